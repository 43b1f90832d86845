create schema dpor_fleet_1;

create table dpor_fleet_1.run (
    name text primary key,
    -- The test program, as all workers run it.
    program text not null,
    hash text not null,
    arguments text[] not null,
    environment text not null,
    -- What the first result belongs to, and so all others.
    identity text,
    executions bigint not null,
    crashes bigint not null,
    vanished bigint not null,
    -- The first task, of those known, that has failed. What comes behind it is left out.
    least int[],
    -- The first task, of those known, that has explored everything. No other result counts.
    whole int[],
    stopped boolean not null default false
);

-- The order of paths is the one in which a single process would explore the tasks.
create table dpor_fleet_1.task (
    run text not null references dpor_fleet_1.run on delete cascade,
    path int[] not null,
    -- Null for the whole exploration, and once the task is done.
    bytes bytea,
    done boolean not null default false,
    primary key (run, path)
);

create index on dpor_fleet_1.task (run, path) where not done;

create table dpor_fleet_1.result (
    run text not null references dpor_fleet_1.run on delete cascade,
    path int[] not null,
    executions bigint not null,
    seconds float8 not null,
    worker text not null,
    result text not null,
    primary key (run, path)
);

-- What was begun, outside of the transaction that a worker takes with it when it dies.
create table dpor_fleet_1.attempt (
    number bigint generated always as identity primary key,
    run text not null references dpor_fleet_1.run on delete cascade,
    path int[] not null,
    worker text not null,
    -- Null if the worker has vanished, or is at work.
    ended text
);

create index on dpor_fleet_1.attempt (run, path);
