//! Frames of values that a program has.

/// A frame of values that are written down: `frame!(session; "name" => values, …)`.
///
/// Values are a list in brackets, in which `None` is a null, or anything that is
/// [`IntoArray`](crate::frame::IntoArray): vectors, slices and arrays of values or of options, and
/// Arrow arrays. All columns have one length. The result is that of
/// [`Session::from_columns`](crate::Session::from_columns).
///
/// ```
/// use warpframe::prelude::*;
///
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let energies = vec![1.5, 2.5, 3.5];
/// let frame = frame!(session;
///     "a" => [1, 2, 3],
///     "s" => ["x", None, "y"],
///     "e" => energies,
///     "zero" => [0; 3],
/// )?;
/// assert_eq!(frame.num_rows(), 3);
/// assert_eq!(frame.column("s")?.to_vec::<Option<String>>()?[1], None);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[macro_export]
macro_rules! frame {
    ($session:expr; $($columns:tt)*) => {
        $crate::__frame!(@columns $session, [] $($columns)*)
    };
}

/// The steps of [`frame!`]: columns are taken one after the other, values of a list, too.
#[doc(hidden)]
#[macro_export]
macro_rules! __frame {
    (@columns $session:expr, [$($made:tt)*]) => {
        $session.from_columns::<::std::string::String>([$($made)*])
    };
    (@columns $session:expr, [$($made:tt)*] $name:expr => [$value:expr; $times:expr] $(, $($rest:tt)*)?) => {
        $crate::__frame!(@columns $session, [
            $($made)* (::std::string::String::from($name), $crate::frame::IntoArray::into_array([$value; $times])),
        ] $($($rest)*)?)
    };
    (@columns $session:expr, [$($made:tt)*] $name:expr => [$($values:tt)*] $(, $($rest:tt)*)?) => {
        $crate::__frame!(@columns $session, [
            $($made)* (
                ::std::string::String::from($name),
                $crate::frame::IntoArray::into_array($crate::__frame!(@values [] $($values)*)),
            ),
        ] $($($rest)*)?)
    };
    (@columns $session:expr, [$($made:tt)*] $name:expr => $values:expr $(, $($rest:tt)*)?) => {
        $crate::__frame!(@columns $session, [
            $($made)* (::std::string::String::from($name), $crate::frame::IntoArray::into_array($values)),
        ] $($($rest)*)?)
    };
    (@values [$($made:tt)*]) => {
        ::std::vec![$($made)*]
    };
    (@values [$($made:tt)*] None $(, $($rest:tt)*)?) => {
        $crate::__frame!(@values [$($made)* ::std::option::Option::None,] $($($rest)*)?)
    };
    (@values [$($made:tt)*] Some($value:expr) $(, $($rest:tt)*)?) => {
        $crate::__frame!(@values [$($made)* ::std::option::Option::Some($value),] $($($rest)*)?)
    };
    (@values [$($made:tt)*] $value:expr $(, $($rest:tt)*)?) => {
        $crate::__frame!(@values [$($made)* ::std::option::Option::Some($value),] $($($rest)*)?)
    };
}
