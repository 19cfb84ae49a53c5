use crate::{plain::layout::*, record::Record};

fn record(value: &str) -> Record {
    Record { key: key("fruit").unwrap(), version: 7, value: value.into() }
}

#[test]
fn a_record_comes_back_whole_whatever_stands_behind_it() {
    for value in ["", "apple", &"x".repeat(VALUE_MAX)] {
        let mut bytes = record(value).encode();
        assert_eq!(bytes.len(), record(value).len());
        bytes.extend([9; 40]);
        assert_eq!(Record::decode(&bytes), Some(record(value)));
    }
}

#[test]
fn of_old_and_new_bytes_none_makes_a_record() {
    let (old, new) = (record("apple").encode(), Record { version: 8, ..record("grape") }.encode());
    for at in 1..old.len() {
        let torn = [&new[..at], &old[at..]].concat();
        assert!(Record::decode(&torn).is_none() || torn == new || torn == old, "{at}");
    }
    assert_eq!(Record::decode(&[0; 128]), None, "a place that was never written");
    assert_eq!(Record::decode(&old[..old.len() - 1]), None);
    assert_eq!(Record::decode(&[255; 24]), None, "a length that is none");
}

#[test]
fn a_slot_leads_to_a_place_of_the_table_or_nowhere() {
    assert_eq!(place(word(&(16384..16512))), Some(16384..16512));
    assert_eq!((place(0), place(u64::MAX)), (None, None));
    assert!(key("ninebytes").is_err() && key("").is_err() && name(&key("fruit").unwrap()) == "fruit");
}
