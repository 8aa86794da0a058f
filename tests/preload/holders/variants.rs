//! An enumeration of Rust whose values keep blocks, in a local variable of run(), below main() of other_language.c.
#![no_std]
#![allow(improper_ctypes)]

extern "C" {
    fn page() -> *mut u8;
    fn wait_for_word(kept: *mut [Kept; 24]) -> i32;
}

#[derive(Clone, Copy)]
pub enum Kept {
    Nothing,
    Number(u64),
    Page { number: u64, data: *mut u8 },
}

#[no_mangle]
pub extern "C" fn run() -> i32 {
    let mut kept = [Kept::Nothing; 24];
    let mut i = 0;
    while i < 24 {
        kept[i] = Kept::Page { number: 1, data: unsafe { page() } };
        i += 1;
    }
    unsafe { wait_for_word(&mut kept) }
}
