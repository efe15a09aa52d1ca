//! Where a scheduler is.

use std::time::Duration;

use tokio::net::TcpStream;
use warpframe::{Error, ErrorKind, Result};

/// How long a scheduler may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// The address of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// As people write it: `df://host:port`.
    name: String,
}

impl Address {
    /// # Errors
    /// Of what is no address.
    pub(super) fn of(url: &str) -> Result<Address> {
        let place = match url.split_once("://") {
            None => url,
            Some(("df" | "http", place)) => place,
            Some((scheme, _)) => return Err(none(url, &format!("{scheme} is not spoken; "))),
        };
        let place = place.trim_end_matches('/');
        match place.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(Address { name: format!("df://{place}") })
            }
            _ => Err(none(url, "")),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Host and port.
    fn place(&self) -> &str {
        self.name.trim_start_matches("df://")
    }

    /// As gRPC wants it.
    pub(super) fn http(&self) -> String {
        format!("http://{}", self.place())
    }

    /// Whether there is a scheduler at all: what Ballista says of it is no sentence.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where nobody listens there.
    pub(super) async fn reach(&self) -> Result<()> {
        let connected = tokio::time::timeout(PATIENCE, TcpStream::connect(self.place())).await;
        let (kind, why) = match connected {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => (error.kind(), error.to_string()),
            Err(_) => (std::io::ErrorKind::TimedOut, "it does not answer".into()),
        };
        let source = std::io::Error::new(kind, format!("no scheduler there: {why}"));
        Err(ErrorKind::Io { path: self.name.clone().into(), source }.into())
    }
}

fn none(url: &str, why: &str) -> Error {
    let message = format!("{url}: {why}a cluster is df://HOST:PORT, as df://127.0.0.1:50050");
    ErrorKind::Plan { message, location: None }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_schedulers() {
        let of = |url: &str| Address::of(url).map(|address| address.http()).ok();
        assert_eq!(of("df://h:50050").as_deref(), Some("http://h:50050"));
        assert_eq!(of("h:50050/").as_deref(), Some("http://h:50050"));
        assert_eq!(of("http://[::1]:1").as_deref(), Some("http://[::1]:1"));
        for wrong in ["df://h", "df://:50050", "h:seventy", "s3://h:50050", ""] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let told = Address::of("s3://h:50050").expect_err("no cluster").to_string();
        assert!(told.contains("s3 is not spoken; a cluster is df://HOST:PORT"), "{told}");
    }
}
