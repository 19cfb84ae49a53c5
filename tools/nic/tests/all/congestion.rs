//! Congestion, by the NIC's core and the switch's model: what each of the cures does, and that a run can be repeated to the packet.

use nic::completion::Status;
use nic::congestion::Parameters;
use pair::fluid::Fluid;
use pair::network::{jain, Network, PAPER};
use run::plot::Parts;
use run::switch::Ecn;
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A slow link, on which a queue is full within a millisecond.
const SLOW: &str = "link 1 Gbit/s 5 us; queue 32 KB";
/// What of a link of 1 Gbit/s is payload, with 1024 bytes in a packet: so much is possible at all.
const POSSIBLE: f64 = 1024.0 / 1106.0;

/// The second flow begins when the first one has all of the link. They do as the paper's model of two flows does: tools/nic/examples/two_flows
/// draws both.
#[test]
fn two_flows_of_dcqcn_become_fair_and_the_queue_stays_between_its_marks() {
    let mut network = Network::new(PAPER, 1024, &[ms(0), ms(2)]).unwrap();
    network.run(ms(40));
    let (from, to) = (ms(25), ms(40));
    let shares = network.goodput(from, to);
    let (fair, queue) = (jain(&shares), network.mean_queue(from, to));
    assert!(fair >= 0.95, "{shares:?}");
    assert!((5.0 * 1024.0..200.0 * 1024.0).contains(&queue), "{queue}");
    assert!(shares.iter().sum::<f64>() > 0.9 * 40.0 * POSSIBLE, "{shares:?}");
    assert!(network.drops == 0 && network.cnps > 0, "{} dropped, {} CNPs", network.drops, network.cnps);
    // Not every mark is told.
    assert!(network.marks > network.cnps, "{} marks, {} CNPs", network.marks, network.cnps);
    assert!(jain(&network.goodput(ms(0), ms(4))) < 0.9, "it was not fair from the beginning");
    let parts = Parts::new((0, ms(40).as_nanos() as u64), 8);
    let ecn = Ecn { none: 5 << 10, all: 200 << 10, most: 0.01 };
    let (rates, waits) = Fluid::new(Parameters::default(), ecn, 40_000_000_000, &[ms(0), ms(2)]).run(&parts, ms(40));
    for (ours, model) in network.rates(&parts).concat().into_iter().zip(rates.concat()) {
        assert!((ours - model).abs() < 0.1 * 40e9, "{ours} and, in the paper's model, {model} bit/s in 5 ms");
    }
    let model = waits[5..].iter().sum::<f64>() / 3.0;
    assert!((0.5..2.0).contains(&(queue / model)), "{queue} and, in the paper's model, {model} bytes wait");
}

#[test]
fn the_same_run_twice_is_the_same_to_the_packet() {
    let run = |wire| {
        let mut network = Network::new(wire, 1024, &[ms(0), ms(0), ms(1)]).unwrap();
        network.run(ms(8));
        (network.trace, network.marks, network.drops, network.complete)
    };
    let lossy = "link 1 Gbit/s 5 us; queue 64 KB; ecn 8..32 KB; lose 1 in 200; dcqcn";
    assert_eq!(run(lossy), run(lossy));
    assert_ne!(run(lossy).0, run("link 1 Gbit/s 5 us; queue 64 KB; ecn 8..33 KB; lose 1 in 200; dcqcn").0);
}

/// Four senders fill a queue that has no room. Who finds room once finds it again; for the others all attempts are soon used up.
#[test]
fn without_control_most_is_lost_and_one_sender_gets_what_the_others_miss() {
    let mut network = Network::new(SLOW, 1024, &[ms(0); 4]).unwrap();
    network.run(ms(100));
    let shares = network.goodput(ms(0), ms(100));
    assert!(network.drops > 100 && network.marks == 0 && network.pauses == 0, "{} dropped", network.drops);
    assert!(jain(&shares) < 0.9, "{shares:?}");
    assert!(network.broken.iter().all(|status| *status == Status::RetryExcErr), "{:?}", network.broken);
}

/// One sender alone loses one packet in a hundred at random. Everything arrives, because the requester goes back, but it sends a lot twice.
#[test]
fn one_loss_in_a_hundred_costs_more_than_a_hundredth() {
    let goodput = |wire: &str| {
        let mut network = Network::new(&format!("link 10 Gbit/s 50 us{wire}"), 1024, &[ms(0)]).unwrap();
        network.run(ms(50));
        assert!(network.broken.is_empty());
        network.goodput(ms(0), ms(50))[0]
    };
    let (whole, lossy) = (goodput(""), goodput("; lose 1 in 100"));
    assert!(whole > 9.0 * POSSIBLE, "{whole}");
    assert!(lossy > 0.0 && lossy < 0.9 * whole, "{lossy} of {whole}");
}

/// Each sender has 32 KB in the switch when it is told to stop; what is on its way then still fits into its 64 KB.
#[test]
fn with_pauses_nothing_is_lost_and_the_link_is_full() {
    let mut network = Network::new("link 1 Gbit/s 5 us; queue 64 KB; pfc 32 KB", 1024, &[ms(0); 4]).unwrap();
    network.run(ms(100));
    let shares = network.goodput(ms(0), ms(100));
    assert!(network.drops == 0 && network.pauses > 10, "{} dropped, {} pauses", network.drops, network.pauses);
    assert!(jain(&shares) > 0.99 && shares.iter().sum::<f64>() > 0.95 * POSSIBLE, "{shares:?}");
}

/// What is READ is sent by who answers: its responses slow down, as WRITEs do, and pauses stop them.
#[test]
fn responses_of_reads_slow_down_and_stop_too() {
    let mut network = Network::reading(PAPER, 1024, &[ms(0), ms(2)]).unwrap();
    network.run(ms(40));
    let shares = network.goodput(ms(25), ms(40));
    assert!(network.drops == 0 && network.cnps > 0, "{} dropped, {} CNPs", network.drops, network.cnps);
    assert!(jain(&shares) >= 0.95 && shares.iter().sum::<f64>() > 0.9 * 40.0 * POSSIBLE, "{shares:?}");
    assert!(network.mean_queue(ms(25), ms(40)) < 200.0 * 1024.0);

    let mut network = Network::reading("link 1 Gbit/s 5 us; queue 64 KB; pfc 32 KB", 1024, &[ms(0); 4]).unwrap();
    network.run(ms(100));
    let shares = network.goodput(ms(20), ms(100));
    assert!(network.drops == 0 && network.pauses > 10, "{} dropped, {} pauses", network.drops, network.pauses);
    assert!(jain(&shares) > 0.99 && shares.iter().sum::<f64>() > 0.95 * POSSIBLE, "{shares:?}");
}

/// So it is where switches wait for each other in a ring: nobody is told to go on.
#[test]
fn a_pause_without_end_is_a_failed_connection() {
    let mut network = Network::new("link 1 Gbit/s 5 us; queue 64 KB; pfc 32 KB", 1024, &[ms(0); 2]).unwrap();
    for at in 1..=20 {
        network.run(ms(at));
        network.pause(0);
    }
    assert_eq!(network.broken, [Status::RetryExcErr], "the other one goes on");
}

/// The paper's steps are for 40 Gbit/s. On a link of 1 Gbit/s steps of a fifth of it, every 55 µs, fill the queue again and again;
/// with those that Mellanox's NICs begin with it stays short.
#[test]
fn parameters_decide_whether_it_settles() {
    let swing = |parameters: &str| {
        let wire = format!("link 1 Gbit/s 5 us; queue 1 MB; ecn 8..64 KB at 10 %; dcqcn {parameters}");
        let mut network = Network::new(&wire, 1024, &[ms(0), ms(0)]).unwrap();
        network.run(ms(200));
        let queues = (50..200).map(|at| network.mean_queue(ms(at), ms(at + 1)));
        let (most, sum) = queues.fold((0f64, 0.0), |(most, sum), queue| (most.max(queue), sum + queue));
        (most / 1024.0, sum / 150.0 / 1024.0)
    };
    let (wild, tame) = (swing("additive 200 Mbit/s"), swing("timer 300 us additive 5 Mbit/s"));
    assert!(wild.0 > 2.0 * tame.0, "the longest queues in KB: {wild:?}, {tame:?}");
}
