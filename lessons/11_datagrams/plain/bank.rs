//! The service, without any RDMA: a box of coins for each client. If a request comes twice, its coins must go in once. So the bank
//! remembers which request of each client it carried out last. One is enough, because a client asks the next one only when it has
//! its answer.

use std::collections::BTreeMap;

use common::say;

use crate::message::{Message, GOODBYE};

/// All that the protocol knows about a client, in 8 bytes.
#[derive(Default)]
pub struct Client {
    /// The number of its last request; 0 before the first.
    number: u32,
    /// What's in its box, which is also the answer.
    coins: u32,
}

/// The clients by number, and how many requests were carried out, came again, and were goodbyes.
#[derive(Default)]
pub struct Bank {
    pub clients: BTreeMap<u32, Client>,
    pub carried_out: u32,
    pub came_again: u32,
    pub goodbyes: u32,
}

impl Bank {
    /// A new client's number. None is used twice, because a program that's started again must not get an old one's answers.
    pub fn admit(&mut self) -> u32 {
        let client = self.clients.len() as u32 + 1;
        self.clients.insert(client, Client::default());
        client
    }

    /// Carries a request out, unless that's been done, and answers. None if we don't know the client, or if it has moved on.
    pub fn answer(&mut self, request: &Message) -> Option<u32> {
        let Message { client: name, number, word } = *request;
        let client = self.clients.get_mut(&name).filter(|client| client.number <= number)?;
        if request.number == client.number {
            self.came_again += 1;
            say!("request {number} of client {name} comes again: the old answer, and nothing is done");
            return Some(client.coins);
        }
        client.number = number;
        self.carried_out += 1;
        match word {
            GOODBYE => self.goodbyes += 1,
            coins => client.coins += coins,
        }
        Some(client.coins)
    }

    /// In all boxes together.
    pub fn coins(&self) -> u32 {
        self.clients.values().map(|client| client.coins).sum()
    }
}
