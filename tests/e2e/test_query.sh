#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trireme query: the files of runs as SQL tables. Usage: test_query.sh path/to/trireme
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
. "$here/cases.sh"
. "$here/expect.sh"

if "$program" query none 'select 1' 2>&1 | grep -q 'needs SQLite'; then
    mistake 'the missing package is named' 1 'err:Debian: libsqlite3-dev' query none 'select 1'
    echo 'ok query # skipped: trireme was built without SQLite (Debian: libsqlite3-dev)'
    finish
fi

said() { # name, what the query prints without blanks at the ends, arguments of query
    name=$1 want=$2
    shift 2
    run query "$@"
    same "$name" "$(printf '%b' "$want")" "$(sed 's/^ *//; s/ *$//' out; cat err)"
}

"$program" train mlp:hidden=8 --steps 20 --batch 8 --eval-data synthetic --eval-every 10 \
    --metrics-every 1 --quiet --out a >/dev/null || exit 1
"$program" train linear --steps 12 --batch 8 --lanes 2 -n 2 --metrics-every 3 --quiet --out b \
    >/dev/null || exit 1

agree() { # all rows of the table, and all lines of the file
    "$program" query a 'select * from metrics' --csv >rows &&
        "$program" query a 'select * from evaluations' --json >evaluations && python3 - <<'END'
import csv, json
lines = [json.loads(line) for line in open("a/metrics.jsonl")]
rows = list(csv.DictReader(open("rows")))
assert len(rows) == 20, rows
for row, line in zip(rows, [line for line in lines if "eval" not in line]):
    assert row.pop("run") == "a" and row.pop("steps") == "1"
    assert {key: float(value) for key, value in row.items()} == line, (row, line)
found = [json.loads(line) for line in open("evaluations")]
wanted = [{"run": "a", **line.pop("eval"), **line} for line in lines if "eval" in line]
assert found == wanted and len(found) == 2, (found, wanted)
END
}
check 'rows are those of metrics.jsonl' agree

expect 'the tables' 0 'out:^  metrics  *run, step, steps, epoch, samples, lr, seconds, loss' \
    query a --tables
said 'several runs' 'run,step\na,20\nb,12' a b 'select run, step from runs' --csv
said 'steps of a line' 'step  steps\n3      3\n6      3\n9      3\n12      3' \
    b 'select step, steps from metrics'
said 'a join' 'n\n2' a 'select count(*) n from metrics m join evaluations e using (run, step)'
said 'with' 'n\n3' a 'with t as (select 1 x union all select x + 1 from t where x < 3)
    select count(*) n from t'
expect 'events' 0 'out:^b,[01]$' query b 'select run, worker from events' --csv
said 'their other fields' 'n\n2' b \
    "select count(distinct json_extract(text, '\$.pid')) n from events where event = 'start'"
expect 'the directory run' 2 'err:^trireme: run has no files of a run' query 'select 1'

# Files made by hand: results of several files, damage, names.
mkdir -p odd/profile/10 odd/profile/10.1 odd/hosts/h1 "o'd*d"
{
    printf '{"step":1,"epoch":0,"samples":4,"loss":null,"Loss":2,"lr":1,"seconds":0.5}\n'
    printf 'no line\n{"step":2,"loss":0.25,"workers":[{"worker":0,"s":"]"}],"\\u001b[31m":1e300}\n'
    printf '{"step" : 3, "loss": 5e-1, "note": "x,\\"y"}\n{"step":4,"lo'
} >odd/metrics.jsonl
printf '{"step":9,"loss":4}\n' >odd/hosts/h1/metrics.jsonl
printf '{"format":1,"title":"a\\u001b[2J","lanes":4,"hosts":["h0"],"steps":20,
    "entries":[{"begin":1.5,"end":2,"exit":3},{"begin":4,"end":5,"exit":0}]}\n' >odd/run.json
{
    printf '{"time":"1","level":"info","event":"start","n":1}\n'
    printf '\033[31m\377\n{"time":"2","worker":1}\n{"cut'
} >odd/agent.log
echo '{"time":"0","event":"old"}' | tee odd/agent.1.log >odd/worker-3.1.log
echo '{"time":"3","event":"join"}' >odd/worker-3.log
mkdir odd/nested && cp odd/metrics.jsonl odd/agent.log odd/nested
printf 'operator,scope,calls,seconds\nmatmul,"a,""b""",7,0.5\n' >odd/profile/10/ops.csv
printf 'operator,calls,rate\nadd,1,2e3\ncut' >odd/profile/10.1/ops.csv
cp odd/metrics.jsonl "o'd*d"

mkdir -p odd/hosts/h0
python3 - <<'END'
import struct
def check(data): # base_check
    h = len(data)
    for word, in struct.iter_unpack("<Q", data):
        h = (h ^ word) * 0x9e3779b97f4a7c15 % (1 << 64)
        h ^= h >> 32
    return struct.pack("<I", h % (1 << 32))
columns = b"compute share 0\nmemory-kib most 4\n".ljust(4096 - 48, b"\0")
page = struct.pack("<QIIqqIIII", 0x5345495245534952, 1, 0, 10**18, 5 * 10**7, 80, 8, 3, 9) + columns
file = page[:12] + check(page) + page[16:]
records = struct.pack("<HHI", 65535, 0, 7) + bytes(8) + struct.pack("<HHI", 0, 0, 9)
for step in 4, 8: # the place in the middle does nothing
    head = struct.pack("<qqqqqIHHHH", step, step * 10**9, 2 * 10**9, 0, 0, 4, 0, 0, 0, 0)
    file += head + check(head + bytes(4) + records) + records
open("odd/hosts/h0/workers.series", "wb").write(file[:-3])
open("odd/workers.series", "wb").write(b"damaged")
END
expect 'damaged lines are told' 0 'err:damaged lines of metrics.jsonl are left out: 1$' \
    query odd 'select 1'
query() { # name, what it prints, select
    run query odd "$3" --csv
    same "$1" "$(printf '%b' "$2")" "$(cat out)"
}
query 'what is no number is null' 'step,loss,Loss_2\n1,,2\n2,0.25,\n3,0.5,\n9,4,' \
    'select step, loss, Loss_2 from metrics'
query 'a run with a pattern'\''s name' 'n\n0' "select count(*) n from metrics where run != 'odd'"
query 'run.json' 'title,lanes,hosts,step,steps\na\\x1b[2J,4,"[""h0""]",9,20' \
    'select title, lanes, hosts, step, steps from runs'
query 'its starts' 'began,ended,state
1970-01-01T00:00:01.500Z,1970-01-01T00:00:05.000Z,finished' 'select began, ended, state from runs'
query 'logs' 'time,worker,event,text
1,,start,"{""n"":1}"\n,,,\\x1b[31m\\xff\n2,1,,{}\n3,3,join,{}' \
    'select time, worker, event, text from events'
query 'times of workers' 'host,worker,step,steps,time,seconds,covers,compute,memory_kib
h0,0,4,4,2001-09-09T01:46:44.000Z,4,2,2,7\nh0,2,4,4,2001-09-09T01:46:44.000Z,4,2,0,9' \
    'select host, worker, step, steps, time, seconds, covers, compute, memory_kib from workers'
same 'a file that is none' 1 "$(grep -c '^trireme: odd/workers.series.*; it is left out$' err)"
query 'tables of a profile' \
    'profile,operator,scope,calls,seconds,rate\n10,matmul,"a,""b""",7,0.5,\n10.1,add,,1,,2000' \
    'select profile, operator, scope, calls, seconds, rate from operators order by profile'
query 'no table' 'n\n0' 'select count(*) n from moves'
expect 'a name is no pattern' 0 "out:^o'd\*d,3$" query "o'd*d" \
    'select run, count(*) n from metrics' --csv
json() {
    "$program" query odd 'select text from events' --json 2>/dev/null |
        python3 -c 'import json, sys; print([json.loads(line)["text"] for line in sys.stdin])'
}
same 'JSON of what is no text' "['{\"n\":1}', '\\\\x1b[31m\\\\xff', '{}', '{}']" "$(json)"

# One line that says what would be right.
while IFS='|' read -r select pattern; do
    mistake "refused: $select" 2 "err:$pattern" query a "$select"
done <<'END'
delete from metrics|query takes one select, which reads
insert into runs(run) values (1)|query takes one select
attach 'x.db' as x|query takes one select
pragma table_info(metrics)|query takes one select
vacuum into 'x.db'|query takes one select
create table t (x)|query takes one select
begin immediate|query takes one select
select 1; select 2|query takes one select
select 1; drop table metrics|query takes one select
/* nothing at all */|query takes one select
with t as (select 1) delete from metrics|query takes one select
select load_extension('x.so')|query takes one select
select los from metrics|no such column: los; do you mean loss?
select * from metric|no such table: metric; do you mean metrics?
select m.stepp from metrics m|no such column: m.stepp; do you mean steps\?
select "a b" from metrics|no such column: a b; `trireme query DIR --tables` lists
select from metrics|syntax error
END
mistake 'a function that runs a pragma' 2 'err:query takes one select' \
    query a "select * from pragma_table_info('metrics')"
mistake 'no select' 2 'err:--tables lists what there is' query a
mistake 'no DIR' 2 "err:query DIR... 'select ...'" query
mistake 'no run' 2 'err:lost has no files of a run' query lost 'select 1'
mkdir later bad && echo '{"format":9}' >later/run.json && echo '{' >bad/run.json
mkfifo bad/agent.log
mistake 'a later version' 1 'err:later/run.json has format 9, of a later version' \
    query later 'select 1'
expect 'a damaged file' 0 'err:bad/run.json is no run.json, or damaged; it is left out' \
    query bad 'select * from events'
expect 'no log' 0 'err:bad/agent.log.*; it is left out' query bad 'select * from events'
mistake 'two forms' 2 'err:give one' query a 'select 1' --csv --json
many=$(seq -s, 101)
mistake 'many columns' 2 'err:has 101 columns; --csv and --json' query a "select $many"
expect 'as CSV' 0 'out:^1,2,3' query a "select $many" --csv

# A database of one's own.
expect 'saved, and asked' 0 'out:^ *20$' query a b --save own.db \
    "select count(*) from metrics where run = 'a'"
check 'nothing else is left' test ! -e own.db.part
kept() { # select, answer; by Python's own SQLite
    python3 -c 'import sqlite3, sys
print(sqlite3.connect("own.db").execute(sys.argv[1]).fetchone())' "$1" | grep -qxF "$2"
}
check 'all tables' kept 'select count(*) from sqlite_master' '(8,)'
check 'all rows' kept 'select count(*), max(step) from metrics' '(24, 20)'
check 'saved again' "$program" query b --save own.db
check 'it is replaced' kept 'select count(*), max(step) from metrics' '(4, 12)'
mistake 'no database is replaced' 2 'err:is no database' query a --save a/metrics.jsonl
check 'the file is still there' test -s a/metrics.jsonl
python3 -c "import sqlite3; sqlite3.connect('mine.db').execute('create table precious (x)')"
mistake 'nor one of others' 2 'err:is no database that query has written' query a --save mine.db
mistake 'a directory that is not there' 1 'err:^trireme: ' query a --save none/own.db
expect 'a failure' 2 'err:no such table' query a b --save own.db 'select * from x'
check 'keeps the earlier one' kept 'select count(*), max(step) from metrics' '(4, 12)'
check 'and leaves nothing' test ! -e own.db.part

# Ctrl-C ends a query without an end.
interrupted() { # options
    python3 - "$program" "$@" <<'END'
import signal, subprocess, sys
endless = "with t as (select 1 x union all select x + 1 from t) select x from t where x < 1"
run = subprocess.Popen([sys.argv[1], "query", "a", *sys.argv[2:], endless],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
while int(open(f"/proc/{run.pid}/stat").read().split()[13]) < 5: pass  # it computes
run.send_signal(signal.SIGINT)
out, err = run.communicate(timeout=10)
assert run.returncode == 130 and err == "trireme: interrupted\n", (run.returncode, err)
END
}
check 'Ctrl-C' interrupted
check 'while it saves' interrupted --save own.db
check 'nothing of it is left' test ! -e own.db.part
finish
