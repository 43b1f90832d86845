//! Do the same programs compile and show the same with std and with `dpor`?
//!
//! Each body in `tests/surface/drop_in/` is compiled twice. It returns what it saw: texts of values,
//! errors and panics. Outside of a model `dpor` must show what std shows, and inside of one so must
//! every execution.
//! Atomics and `Arc` have a file of their own, `tests/surface/drop_in_atomic.rs`.
// The feature has other signatures, whose tests are `loom_signatures`.
#![cfg(not(feature = "loom"))]

#[path = "drop_in/dpor.rs"]
mod with_dpor;
#[path = "drop_in/std.rs"]
#[allow(clippy::duplicate_mod, reason = "this is what the test is about")]
mod with_std;

/// A body, compiled twice.
struct Body {
    std: fn() -> Vec<String>,
    dpor: fn() -> Vec<String>,
}

impl Body {
    /// Outside and inside are run one after the other, because they may use the same statics.
    fn check(&self) {
        let expected = (self.std)();
        pretty_assertions::assert_eq!((self.dpor)(), expected, "outside of a model");
        let mut builder = dpor::Builder::new();
        builder.catch_panics = true;
        // The expected values are those without spurious wake-ups.
        builder.thorough = dpor::Thorough::Off;
        let body = self.dpor;
        let report = builder.check(move || assert_eq!(body(), expected, "inside of a model"));
        assert!(report.complete);
    }
}

macro_rules! tests {
    ($($file:ident: $($body:ident)*;)*) => {$($(
        #[test]
        fn $body() {
            let body = Body { std: with_std::$file::$body, dpor: with_dpor::$file::$body };
            body.check();
        }
    )*)*};
}

tests! {
    atomics:
        orderings_that_do_not_exist_are_refused;
    locks:
        a_poisoned_mutex_gives_its_data_all_the_same
        a_mutex_in_a_static_counts_for_all_threads
        a_held_lock_says_so
        readers_share_and_a_writer_does_not
        only_a_writer_poisons_a_rwlock
        a_value_is_handed_over_by_a_condvar
        a_timed_wait_ends
        a_waiter_sees_that_the_mutex_is_poisoned
        a_write_lock_that_is_downgraded_while_its_thread_panics_is_not_poisoned
        one_of_a_group_leads;
    once:
        a_once_runs_once
        a_once_that_panicked_is_poisoned_until_it_is_forced
        a_value_is_set_once
        a_value_whose_making_panicked_is_made_again
        a_lazy_value_is_made_when_it_is_needed
        a_lazy_value_whose_making_panicked_is_poisoned
        who_waits_for_a_lazy_value_hears_that_its_making_panicked;
    queues:
        messages_come_in_the_order_of_each_sender
        an_empty_channel_and_one_without_senders_differ
        a_message_without_receiver_comes_back
        a_bounded_channel_holds_as_many_as_it_may
        a_channel_without_room_hands_over
        a_message_that_nobody_takes_is_dropped_with_its_channel
        errors_have_the_texts_of_std;
    threads:
        a_thread_gives_what_it_returns
        a_panic_goes_to_who_joins
        a_builder_names_its_thread
        a_scope_ends_after_its_threads
        a_token_is_kept_for_the_next_park
        a_spinning_thread_sees_the_flag
        each_thread_has_its_own_variables
        variables_are_dropped_at_the_end_of_their_thread
        a_variable_that_is_set_first_needs_no_initialiser
        a_variable_without_destructor_is_there_for_those_of_others
        a_variable_that_its_initialiser_makes_is_replaced
        a_variable_may_belong_to_a_type
        variables_are_declared_where_every_name_means_something_else;
    cells:
        cells_lend_pointers
        cells_of_one_thread_change_their_values
        the_other_cells_are_there;
    traits:
        bounds_are_those_of_std
        lifetimes_may_be_shortened_as_those_of_std
        sizes_of_what_shares_its_memory_are_those_of_std;
}

/// Whether the other thread comes in time to wait is up to the system, so this tries more than once.
#[test]
fn who_waits_outside_of_a_model_for_a_lazy_value_hears_that_its_making_panicked() {
    let body = with_dpor::once::who_waits_for_a_lazy_value_hears_that_its_making_panicked;
    let poisoned = "LazyLock instance has previously been poisoned";
    for _ in 0..100 {
        assert_eq!(body(), ["in the middle", poisoned]);
    }
}
