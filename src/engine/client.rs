//! A drawn or recorded workload as a client of the engine.

use super::run::Client;
use crate::units::{SimSpan, SimTime};
use crate::workload::{Request, RequestStream};

impl Client for RequestStream {
    #[inline]
    fn next_request(&mut self) -> Option<Request> {
        self.next()
    }

    fn users(&self) -> Option<u32> {
        self.closed_users()
    }

    fn request_at(&mut self, send: SimTime) -> Request {
        self.draw(send)
    }

    fn think_time(&mut self, _request: &Request) -> SimSpan {
        RequestStream::think_time(self)
    }
}
