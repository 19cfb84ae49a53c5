use super::*;
use std::path::Path;

fn bundled(name: &str, folder: &str) -> serde_json::Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = std::fs::read(root.join("captures").join(name).with_extension("pcapng")).unwrap();
    let lesson = Lesson::read(&root.join("lessons").join(folder)).unwrap();
    serde_json::from_str(&run(&file, name, Some(&lesson)).unwrap().json()).unwrap()
}

#[test]
fn a_bundled_run_has_all_its_events() {
    let run = bundled("04_rdma_write", "04_rdma_write");
    assert_eq!(run["nodes"][0].as_str().unwrap().split(' ').next(), Some("client"));
    assert!(run["events"].as_array().unwrap().len() > 100);
}
