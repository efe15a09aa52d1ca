//! `md5(s)` and `sha256(s)`: the digests of RFC 1321 and of FIPS 180-4 of a string or of bytes, in
//! small hexadecimal digits.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use md5::{Digest, Md5};
use sha2::Sha256;

use super::calls::HostCall;

pub(crate) fn md5() -> Arc<ScalarUDF> {
    DigestFunction::of(Algorithm::Md5)
}

pub(crate) fn sha256() -> Arc<ScalarUDF> {
    DigestFunction::of(Algorithm::Sha256)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Algorithm {
    Md5,
    Sha256,
}

impl Algorithm {
    fn digits(self, message: &[u8]) -> String {
        match self {
            Algorithm::Md5 => hexadecimal(Md5::digest(message)),
            Algorithm::Sha256 => hexadecimal(Sha256::digest(message)),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DigestFunction {
    algorithm: Algorithm,
    signature: Signature,
}

impl DigestFunction {
    fn of(algorithm: Algorithm) -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(DigestFunction { algorithm, signature }))
    }
}

impl ScalarUDFImpl for DigestFunction {
    fn name(&self) -> &str {
        match self.algorithm {
            Algorithm::Md5 => "md5",
            Algorithm::Sha256 => "sha256",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [dtype] if dtype.is_string() || dtype.is_null() => Ok(vec![DataType::Utf8]),
            [dtype] if dtype.is_binary() => Ok(vec![DataType::Binary]),
            _ => plan_err!("{} takes a string or bytes", self.name()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let [values] = call.arrays.as_slice() else {
            return internal_err!("{} of {} arguments", self.name(), call.arrays.len());
        };
        let values = cast(values, &DataType::Binary)?;
        let values = values.as_binary::<i32>();
        let digest = |value: Option<&[u8]>| value.map(|value| self.algorithm.digits(value));
        let found: StringArray = values.iter().map(digest).collect();
        call.yields(Arc::new(found))
    }
}

fn hexadecimal(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of RFC 1321, and of messages about as long as a block.
    #[test]
    fn digests_are_those_of_the_rfc() {
        for (message, expected) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (&"x".repeat(55), "04364420e25c512fd958a70738aa8f72"),
            (&"x".repeat(56), "668a72d5ba17f08e62dabcafad6db14b"),
            (&"x".repeat(64), "c1bb4f81d892b2d57947682aeb252456"),
            (&"x".repeat(1000), "398533d48111e9f664b1f64cb10c4b63"),
        ] {
            assert_eq!(Algorithm::Md5.digits(message.as_bytes()), expected, "{message}");
        }
    }

    /// The examples of FIPS 180-2, of one block and of two.
    #[test]
    fn digests_are_those_of_the_standard() {
        let two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        for (message, expected) in [
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (two, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
        ] {
            assert_eq!(Algorithm::Sha256.digits(message.as_bytes()), expected, "{message}");
        }
    }
}
