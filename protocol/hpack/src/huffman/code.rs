//! RFC 7541 Appendix B: the code.
//!
//! The code is canonical: codes of one length are consecutive in the order of their symbols, and
//! each length goes on where the shorter one ended. So the lengths say everything, and the compiler
//! works out the rest.

/// Symbols: the 256 bytes and EOS.
pub(super) const SYMBOLS: usize = 257;
/// The symbol that must not occur.
pub(super) const EOS: u16 = 256;
/// The longest code, in bits.
pub(super) const LONGEST: usize = 30;

/// The length of each symbol's code, in bits.
pub(super) static LENGTHS: [u8; SYMBOLS] = LENGTH_OF;

#[rustfmt::skip]
const LENGTH_OF: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
     6, 10, 10, 12, 13,  6,  8, 11, 10, 10,  8, 11,  8,  6,  6,  6,
     5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8, 15,  6, 12, 10,
    13,  6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8, 13, 19, 13, 14,  6,
    15,  5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,
     6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The code of each symbol, in its low bits.
pub(super) static CODES: [u32; SYMBOLS] = CODE_OF;

const CODE_OF: [u32; SYMBOLS] = {
    let mut codes = [0; SYMBOLS];
    let mut next = 0;
    let mut length = 1;
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTH_OF[symbol] as usize == length {
                codes[symbol] = next;
                next += 1;
            }
            symbol += 1;
        }
        next <<= 1;
        length += 1;
    }
    codes
};

/// Bits that one look-up in [`WINDOWS`] sees: two of the frequent symbols at a time, in a table
/// that leaves most of the first-level cache to others.
pub(super) const WINDOW_BITS: u32 = 11;
const WINDOW_COUNT: usize = 1 << WINDOW_BITS;

/// Symbols at the start of the next 11 bits: one or two whole symbols, or (0) a code longer than that.
#[derive(Clone, Copy)]
pub(super) struct Window(u32);

impl Window {
    const fn one(symbol: u32, bits: u32) -> Self {
        Self(bits | 1 << 8 | symbol << 16)
    }

    const fn and(self, symbol: u32, bits: u32) -> Self {
        Self(self.0 + bits + (1 << 8) + (symbol << 24))
    }

    /// Returns whether there is no whole symbol.
    #[inline]
    pub(super) const fn is_long(self) -> bool {
        self.0 == 0
    }

    /// The symbols, the second one 0 if there is none.
    #[inline]
    pub(super) const fn symbols(self) -> [u8; 2] {
        ((self.0 >> 16) as u16).to_le_bytes()
    }

    /// The number of symbols.
    #[inline]
    pub(super) const fn count(self) -> usize {
        (self.0 >> 8 & 3) as usize
    }

    /// The bits of all symbols.
    #[inline]
    pub(super) const fn bits(self) -> u32 {
        self.0 & 0xff
    }

    /// The bits of the first symbol.
    #[inline]
    pub(super) fn first_bits(self) -> u32 {
        u32::from(LENGTHS[usize::from(self.symbols()[0])])
    }
}

/// By the next 11 bits.
pub(super) static WINDOWS: [Window; WINDOW_COUNT] = {
    let single = singles();
    let mut windows = single;
    let mut index = 0;
    while index < WINDOW_COUNT {
        let first = single[index];
        if !first.is_long() {
            let rest = single[(index << first.bits()) & (WINDOW_COUNT - 1)];
            if !rest.is_long() && first.bits() + rest.bits() <= WINDOW_BITS {
                windows[index] = first.and(rest.symbols()[0] as u32, rest.bits());
            }
        }
        index += 1;
    }
    windows
};

const fn singles() -> [Window; WINDOW_COUNT] {
    let mut windows = [Window(0); WINDOW_COUNT];
    let mut symbol = 0;
    while symbol < SYMBOLS - 1 {
        let bits = LENGTH_OF[symbol] as u32;
        if bits <= WINDOW_BITS {
            let spare = WINDOW_BITS - bits;
            let start = (CODE_OF[symbol] << spare) as usize;
            let mut index = start;
            while index < start + (1 << spare) {
                windows[index] = Window::one(symbol as u32, bits);
                index += 1;
            }
        }
        symbol += 1;
    }
    windows
}

/// The codes of one length.
#[derive(Clone, Copy)]
pub(super) struct Length {
    /// The first code, aligned to the left of 32 bits.
    pub(super) first: u32,
    /// The first code beyond them, aligned to the left of 32 bits.
    pub(super) limit: u64,
    /// Start of their symbols in [`SORTED`].
    pub(super) offset: u16,
}

/// By length in bits.
pub(super) static BY_LENGTH: [Length; LONGEST + 1] = {
    let mut all = [Length { first: 0, limit: 0, offset: 0 }; LONGEST + 1];
    let (mut next, mut offset, mut length) = (0_u64, 0, 1);
    while length <= LONGEST {
        let mut count = 0;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            count += (LENGTH_OF[symbol] as usize == length) as u64;
            symbol += 1;
        }
        let spare = 32 - length;
        all[length] =
            Length { first: (next << spare) as u32, limit: (next + count) << spare, offset };
        offset += count as u16;
        next = (next + count) << 1;
        length += 1;
    }
    all
};

/// The symbols by length, then by number.
pub(super) static SORTED: [u16; SYMBOLS] = {
    let mut sorted = [0; SYMBOLS];
    let (mut at, mut length) = (0, 1);
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTH_OF[symbol] as usize == length {
                sorted[at] = symbol as u16;
                at += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    sorted
};
