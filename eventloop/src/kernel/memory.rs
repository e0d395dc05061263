//! Memory that was freed, given back to the operating system.

/// Gives the pages of this thread's heap that hold nothing back to the operating system, if the program's allocator
/// is known (feature `mimalloc`). Without, that is left to the allocator.
pub(crate) fn give_back() {
    #[cfg(feature = "mimalloc")]
    mimalloc_collects();
}

#[cfg(feature = "mimalloc")]
#[allow(unsafe_code, reason = "no crate wraps mi_collect")]
fn mimalloc_collects() {
    // The function comes with this crate.
    use mimalloc as _;

    unsafe extern "C" {
        fn mi_collect(force: bool);
    }

    // SAFETY: it may be called at any time and by any thread, and touches only what is free.
    unsafe { mi_collect(true) };
}
