//! The tests of the mailbox, as users of loom write them.

#[cfg(not(loom))]
#[test]
fn a_letter_is_taken_once() {
    let mailbox = renamed::Mailbox::new();
    assert_eq!(mailbox.put(1), Ok(()));
    assert_eq!(mailbox.put(2), Err(2));
    assert_eq!((mailbox.take(), mailbox.take()), (Some(1), None));
}

#[cfg(loom)]
mod explored {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;
    use renamed::{Mailbox, PUT, ROOM, TAKEN};

    #[test]
    fn of_two_letters_one_is_put_and_one_of_two_takers_has_it() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new());
            let taken = Arc::new(AtomicUsize::new(0));
            let putters: Vec<_> = (1..3)
                .map(|letter| {
                    let mailbox = mailbox.clone();
                    thread::spawn(move || mailbox.put(letter).is_ok())
                })
                .collect();
            let taker = {
                let (mailbox, taken) = (mailbox.clone(), taken.clone());
                thread::spawn(move || {
                    if let Some(letter) = mailbox.take() {
                        taken.fetch_add(letter, Ordering::Relaxed);
                    }
                })
            };
            let put = putters.into_iter().map(|p| p.join().unwrap());
            let put = put.filter(|&put| put).count();
            taker.join().unwrap();
            let first = taken.load(Ordering::Relaxed);
            let left = mailbox.take();
            match put {
                1 => assert!((first == 0) == left.is_some()),
                2 => assert_eq!(first + left.unwrap(), 3),
                _ => panic!("no letter was put"),
            }
        });
    }

    #[test]
    fn a_spinning_reader_has_the_letter_in_the_end() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new());
            let theirs = mailbox.clone();
            let putter = thread::spawn(move || theirs.put("letter").unwrap());
            let letter = loop {
                match mailbox.take() {
                    Some(letter) => break letter,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(letter, "letter");
            putter.join().unwrap();
        });
    }

    #[test]
    fn what_a_crate_without_std_declares_counts_for_each_thread() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new());
            let theirs = mailbox.clone();
            let putter = thread::spawn(move || {
                theirs.put(1).unwrap();
                PUT.with(|put| put.get())
            });
            assert_eq!(putter.join().unwrap(), *ROOM);
            assert_eq!(mailbox.take(), Some(1));
            assert_eq!(PUT.with(|put| put.get()), 0);
            assert_eq!(TAKEN.with(|taken| taken.get()), 1);
        });
    }
}
