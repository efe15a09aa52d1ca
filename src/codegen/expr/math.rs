//! Mathematical functions.
