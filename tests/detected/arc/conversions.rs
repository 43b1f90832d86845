//! What can an `Arc` be made from, and is its value aligned as it must be?

use std::any::Any;

use dpor::sync::{Arc, Weak};
use dpor::thread;
use pretty_assertions::assert_eq;

#[test]
fn a_value_keeps_its_alignment_whatever_is_in_front_of_it() {
    #[repr(align(64))]
    struct Wide(u8);
    #[repr(align(1024))]
    struct Wider(u8);
    fn address<T: ?Sized>(shared: &Arc<T>) -> usize {
        Arc::as_ptr(shared).cast::<u8>().addr()
    }
    let wide = Arc::new(Wide(1));
    assert_eq!((address(&wide) % 64, wide.0), (0, 1));
    let wider: Arc<[Wider]> = Arc::from([Wider(1), Wider(2)]);
    assert_eq!((address(&wider) % 1024, wider[1].0), (0, 2));
    // SAFETY: the pointer is from `into_raw`.
    let again = unsafe { Arc::from_raw(Arc::into_raw(wider.clone())) };
    assert!(Arc::ptr_eq(&wider, &again));
    let nothing = Arc::new(());
    let weak = Arc::downgrade(&nothing).into_raw();
    // SAFETY: the pointer is from `into_raw`.
    let weak = unsafe { Weak::from_raw(weak) };
    assert_eq!(weak.upgrade(), Some(nothing));
    assert_eq!(size_of::<Option<Arc<u8>>>(), size_of::<usize>());
}

#[test]
fn what_has_no_size_comes_from_a_box_or_from_stds_arc() {
    dpor::model(|| {
        let called: Arc<dyn Fn(usize) -> usize + Send + Sync> =
            Arc::from(Box::new(|x: usize| x + 1) as Box<dyn Fn(usize) -> usize + Send + Sync>);
        let other = called.clone();
        let thread = thread::spawn(move || other(1));
        assert_eq!((called(2), thread.join().unwrap()), (3, 2));
        let any = Arc::from_std(
            std::sync::Arc::new(String::from("x")) as std::sync::Arc<dyn Any + Send + Sync>
        );
        let any = any.downcast::<u8>().expect_err("it is a string");
        assert_eq!(*any.downcast::<String>().expect("it is"), "x");
        let text: Arc<str> = "text".into();
        let bytes: Arc<[u8]> = text.clone().into();
        assert_eq!((&*text, &*bytes), ("text", &b"text"[..]));
        let boxes: Arc<[Box<usize>]> = (0..3).map(Box::new).collect();
        assert_eq!(boxes.iter().map(|x| **x).sum::<usize>(), 3);
    });
}

#[test]
#[should_panic(expected = "was given an Arc that is shared: 2 references and 0 weak ones")]
fn a_std_arc_that_is_shared_cannot_be_taken_over() {
    let std = std::sync::Arc::new(1);
    let _other = std.clone();
    Arc::from_std(std);
}
