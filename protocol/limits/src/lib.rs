//! Declarations of limits. [`limits!`] makes a struct of them, its defaults, and what sets each by its name: the default, bounds, unit and
//! reason of a limit are in one place.

use std::time::Duration;

/// One limit of `L`.
#[derive(Debug)]
pub struct Limit<L> {
    /// The field. Its key in a file has `-` for `_`.
    pub name: &'static str,
    /// The least that it may be set to; of a time, in milliseconds. Default: 1.
    pub least: u64,
    /// The most that it may be set to. Default: what its type holds.
    pub most: u64,
    /// The field of a value.
    pub of: fn(&mut L) -> Place<'_>,
}

/// A limit in its place.
#[derive(Debug)]
pub enum Place<'a> {
    /// A small number.
    U8(&'a mut u8),
    /// A number of 16 bits.
    U16(&'a mut u16),
    /// A number of 32 bits.
    U32(&'a mut u32),
    /// A number that `None` stands for the lack of.
    Optional(&'a mut Option<u32>),
    /// A number of 64 bits.
    U64(&'a mut u64),
    /// A number of bytes or things in memory.
    Usize(&'a mut usize),
    /// A time.
    Time(&'a mut Duration),
}

macro_rules! places {
    ($($variant:ident($type:ty)),* $(,)?) => {$(
        impl<'a> From<&'a mut $type> for Place<'a> {
            fn from(limit: &'a mut $type) -> Self {
                Self::$variant(limit)
            }
        }
    )*};
}

places!(U8(u8), U16(u16), U32(u32), Optional(Option<u32>), U64(u64), Usize(usize), Time(Duration),);

/// A struct of limits, as [`limits!`] declares them.
pub trait Limits: Default + 'static {
    /// The file that declares them, from the root of the workspace.
    const FILE: &'static str;
    /// Prefix of the names on the page of limits: `named "LOG_"`. Default: nothing.
    const PREFIX: &'static str;
    /// Each of them, in the order of the declaration.
    const ALL: &'static [Limit<Self>];
}

/// Declares a struct of limits: `name: type [from LEAST to MOST] = default`. The struct implements [`Limits`](trait@Limits) and
/// `Default`. Fields in `with { … }` are groups of limits, or settings next to them, and are not in [`Limits::ALL`]; a struct without
/// them has its defaults as `DEFAULT`, too.
///
/// ```
/// use std::time::Duration;
/// use bolide_limits::{Limits as _, limits};
///
/// limits! {
///     /// The limits of a queue.
///     #[derive(Debug, Clone)]
///     pub struct Queue {
///         /// Jobs that wait. Default: 64. Unit: jobs. Reason: a turn's worth. Against: none.
///         waiting_count: usize [from 0 to 1024] = 64,
///         /// How long one waits. Default: 1 s. Unit: time. Reason: longer than a turn. Against: none.
///         wait_time: Duration = Duration::from_secs(1),
///     }
/// }
///
/// assert_eq!(Queue::DEFAULT.waiting_count, 64);
/// assert_eq!(Queue::ALL[0].most, 1024);
/// assert_eq!((Queue::ALL[1].name, Queue::ALL[1].least), ("wait_time", 1));
/// ```
#[macro_export]
macro_rules! limits {
    (
        $(#[$meta:meta])*
        pub struct $name:ident $(named $prefix:literal)? {
            $(
                $(#[$about:meta])*
                $field:ident: $type:ty $([$(from $least:literal)? $(to $most:expr)?])? = $default:expr,
            )*
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$about])* pub $field: $type,)*
        }

        impl $name {
            /// Default of each of them.
            pub const DEFAULT: Self = Self { $($field: $default,)* };
        }

        impl ::core::default::Default for $name {
            fn default() -> Self {
                Self::DEFAULT
            }
        }

        $crate::limits!(@all $name $($prefix)?: $($field $([$(from $least)? $(to $most)?])?,)*);
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident $(named $prefix:literal)? {
            $(
                $(#[$about:meta])*
                $field:ident: $type:ty $([$(from $least:literal)? $(to $most:expr)?])? = $default:expr,
            )*
        }
        with {
            $(
                $(#[$group_about:meta])*
                $group:ident: $group_type:ty = $group_default:expr,
            )*
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$about])* pub $field: $type,)*
            $($(#[$group_about])* pub $group: $group_type,)*
        }

        impl ::core::default::Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    $($group: $group_default,)*
                }
            }
        }

        $crate::limits!(@all $name $($prefix)?: $($field $([$(from $least)? $(to $most)?])?,)*);
    };
    (@all $name:ident $($prefix:literal)?: $($field:ident $([$(from $least:literal)? $(to $most:expr)?])?,)*) => {
        impl $crate::Limits for $name {
            const FILE: &'static str = file!();
            const PREFIX: &'static str = concat!($($prefix)?);
            const ALL: &'static [$crate::Limit<Self>] = &[$($crate::Limit {
                name: stringify!($field),
                least: $crate::first(&[$($($least,)?)? 1]),
                most: $crate::first(&[$($($most,)?)? u64::MAX]),
                of: |limits| (&mut limits.$field).into(),
            },)*];
        }
    };
}

/// Returns what was given, or the default behind it.
#[doc(hidden)]
pub const fn first(given: &[u64]) -> u64 {
    given[0]
}
