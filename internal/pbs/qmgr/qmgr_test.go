package qmgr

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/negotiator/ledger"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		line, want string // as text, or the error
	}{
		{"", ""}, {"   # a comment", ""},
		{"create queue short queue_type=execution,enabled = True",
			"create queue [short] queue_type = execution; enabled = True"},
		{"c q a,b", "create queue [a b] "},
		{"s q short@default max_run = \"[u:PBS_GENERIC=3],[u:ada=10]\"",
			"set queue [short] max_run = [u:PBS_GENERIC=3],[u:ada=10]"},
		{"set queue short max_run = [u:PBS_GENERIC=3],[u:ada=10], enabled=t",
			"set queue [short] max_run = [u:PBS_GENERIC=3],[u:ada=10]; enabled = t"},
		{"set queue short acl_users += ann, acl_users += bob", "set queue [short] acl_users += ann; acl_users += bob"},
		{"set queue @default started = False", "set queue [] started = False"},
		{"set server resources_default.walltime = 1:00:00", "set server [] resources_default.walltime = 1:00:00"},
		{"set server @default default_queue -= x", "set server [] default_queue -= x"},
		{"unset queue short resources_max.mem,max_run", "unset queue [short] resources_max.mem  ; max_run  "},
		{"unset server max_run", "unset server [] max_run  "},
		{"p s", "print server [] "}, {"print server default_queue", "print server [] default_queue  "},
		{"list queue", "list queue [] "}, {"l queues @default", "list queue [] "},
		{"list q short enabled", "list queue [short] enabled  "},
		{"set node n1.example.org state=offline,comment='a b, c'",
			"set node [n1.example.org] state = offline; comment = a b, c"},
		{"help set", "help  [] "}, {"exit", "quit  [] "}, {"active queue a", "active queue [a] "},
		{"frobnicate queue a", "qmgr: Illegal operation: frobnicate\nTry 'help' if you are having trouble."},
		{"set cloud a b=c", "qmgr: Illegal object type: cloud."},
		{"set queue a", "qmgr: Syntax error - cannot locate attribute\nset queue a\n           ^"},
		{"set queue a b", "qmgr: Syntax error - cannot locate attribute\nset queue a b\n            ^"},
		{`set queue a b="c`, "qmgr: Syntax error - no closing quote\nset queue a b=\"c\n              ^"},
		{"delete queue a b=c", "qmgr: Syntax error - cannot locate attribute\ndelete queue a b=c\n               ^"},
		{"set queue a;b c=d", "qmgr: Illegal object name: a;b\nset queue a;b c=d\n          ^"},
	} {
		cmd, ok, err := ParseCommand(c.line)
		got := ""
		if ok {
			got = fmt.Sprintf("%s %s %v ", cmd.Verb, cmd.Kind, cmd.Names)
			var parts []string
			for _, ch := range cmd.Changes {
				parts = append(parts, fmt.Sprintf("%s %s %s", ch.Attribute(), ch.Op, ch.Value))
			}
			got += strings.Join(parts, "; ")
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q:\ngot  %q\nwant %q", c.line, got, c.want)
		}
	}
}

// TestApply checks what changes do to a queue with a limit and a list, and what is
// refused.
func TestApply(t *testing.T) {
	for _, c := range []struct{ change, want string }{
		{"max_run = [u:ada=3]", "max_run = [u:ada=3]"},
		{"max_run += [u:ada=5]", "max_run = [o:PBS_ALL=9],[u:PBS_GENERIC=2],[u:ada=5]"},
		{"max_run -= [u:PBS_GENERIC]", "max_run = [o:PBS_ALL=9]"},
		{"max_running = 4", "max_run = [o:PBS_ALL=4],[u:PBS_GENERIC=2]"},
		{"max_group_run = 4", "max_run = [o:PBS_ALL=9],[u:PBS_GENERIC=2],[g:PBS_GENERIC=4]"},
		{"max_queuable = 7", "max_queued = [o:PBS_ALL=7]"},
		{"max_run_res.mem = [p:sci=4gb]", "max_run_res.mem = [p:sci=4gb]"},
		{"max_run_res.ncpus = [u:PBS_GENERIC=64]", "max_run_res.ncpus = [u:PBS_GENERIC=64]"},
		{"max_run_res.walltime = [u:PBS_GENERIC=64]", "Unknown resource: walltime is not counted"},
		{"acl_users += bob,ann", "acl_users = -eve,+,bob,ann"},
		{"acl_users -= +", "acl_users = -eve"},
		{"resources_max.walltime = 90:00", "resources_max.walltime = 01:30:00"},
		{"resources_max.mem = 4096kb", "resources_max.mem = 4mb"},
		{"resources_max.ncpus = 2.5", "resources_max.ncpus = 2.5"},
		{"resources_max.unicorns = 1", "Unknown resource: unicorns"},
		{"resources_max = 1", "Undefined attribute: resources_max"},
		{"resources_max.mem = lots", `Illegal attribute or resource value: mem of "lots"`},
		{"Priority = 200", "Priority = 200"},
		{"Priority = 2000", "Illegal attribute or resource value: a priority of 2000 is not between -1024 and 1023"},
		{"enabled = maybe", `Illegal attribute or resource value: "maybe" is neither True nor False`},
		{"queue_type = r", "queue_type = Route"},
		{"queue_type = x", `Illegal attribute or resource value: "x" is neither Execution nor Route`},
		{"max_run = 3", "Illegal attribute or resource value: write limits as in [u:PBS_GENERIC=3],[u:ada=10]"},
		{"max_run = [x:a=3]", "Illegal attribute or resource value: [x:a=3] is none of [o:PBS_ALL=N], [u:NAME=N], " +
			"[g:NAME=N] and [p:NAME=N]"},
		{"total_jobs = 3", "Cannot set attribute, read only or insufficient permission: total_jobs"},
		{"colour = blue", "Undefined attribute: colour"},
		{"scheduling = True", "Undefined attribute: scheduling"},
	} {
		q := ledger.QueuePolicy{Name: "q",
			Access: &ledger.QueueAccess{Users: ledger.ACL{Entries: []string{"-eve", "+"}}}}
		total, user := int64(9), int64(2)
		q.Running = ledger.CountLimits{Total: &total, PerUser: &user}
		cmd, _, err := ParseCommand("set queue q " + c.change)
		if err != nil {
			t.Fatal(err)
		}
		o := &Object{Queue: &q}
		before := fmt.Sprint(Attributes(o))
		if err = ApplyChange(o, cmd.Changes[0]); err != nil {
			if err.Error() != c.want || ErrorNumber(err) == 0 || fmt.Sprint(Attributes(o)) != before {
				t.Errorf("%s: got %v, want %s", c.change, err, c.want)
			}
			continue
		}
		if got := ListObject("", Attributes(o), nil); !strings.Contains(got, "    "+c.want+"\n") {
			t.Errorf("%s: want %s, got %s", c.change, c.want, got)
		}
	}
}

// randomChanges returns random changes, valid and invalid ones.
func randomChanges(rng *rand.Rand) (lines []string) {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	for range rng.IntN(25) {
		attr := pick("max_run", "max_queued", "max_run_res.ncpus", "max_queued_res.mem", "acl_users", "acl_hosts",
			"acl_user_enable", "route_destinations", "queue_type", "resources_max.mem",
			"resources_min.ncpus", "resources_default.walltime", "default_chunk.ngpus", "resources_max.nodect",
			"max_array_size", "kill_delay", "enabled", "started", "from_route_only",
			"Priority", "band", "allowed_users", "max_running", "nonsense")
		value := pick("[u:PBS_GENERIC=3]", "[u:ada=10],[g:phys=2gb]", "[o:PBS_ALL=7]", "[p:sci=4],[p:PBS_GENERIC=1]",
			"ann,-bob@*.x", "True", "False", "a,b", "Route", "Execution", "17", "4gb", "1:00:00", "production", "batch")
		lines = append(lines, fmt.Sprintf("set queue q %s %s %s", attr, pick("=", "=", "+=", "-="), quotedText(value)))
	}
	return lines
}

// TestRoundTrip checks that the printed commands recreate a queue, and that patches are
// correct.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		queues := [2]ledger.QueuePolicy{{Name: "q"}, {Name: "q"}}
		for i := range queues {
			applyCommands(t, &queues[i], strings.Join(randomChanges(rng), "\n"))
		}
		again := ledger.QueuePolicy{Name: "q"}
		text := PrintCommands(Queue, "q", Attributes(&Object{Queue: &queues[0]}), nil)
		if refused := applyCommands(t, &again, text); refused > 0 {
			t.Fatalf("seed %d: of\n%s%d lines are refused", seed, text, refused)
		}
		if got := PrintCommands(Queue, "q", Attributes(&Object{Queue: &again}), nil); got != text {
			t.Fatalf("seed %d: of\n%scame\n%s", seed, text, got)
		}
		patch, err := PatchFor(queues[0], queues[1])
		if err != nil {
			t.Fatal(err)
		}
		if got, want := mergePatch(t, queues[0], patch), objectDocument(t, queues[1]); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: with %v came %v, want %v", seed, patch, got, want)
		}
	}
}

func applyCommands(t *testing.T, q *ledger.QueuePolicy, lines string) (refused int) {
	for line := range strings.Lines(lines) {
		cmd, _, err := ParseCommand(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, c := range cmd.Changes {
			if ApplyChange(&Object{Queue: q}, c) != nil {
				refused++
			}
		}
	}
	return refused
}

func objectDocument(t *testing.T, v any) (doc map[string]any) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// mergePatch implements RFC 7396 literally, after its section 2.
func mergePatch(t *testing.T, target any, patch map[string]any) map[string]any {
	doc, ok := target.(map[string]any)
	if !ok {
		doc = map[string]any{}
		if target != nil && reflect.TypeOf(target).Kind() == reflect.Struct {
			doc = objectDocument(t, target)
		}
	}
	for key, v := range patch {
		if v == nil {
			delete(doc, key)
		} else if inner, ok := v.(map[string]any); ok {
			doc[key] = mergePatch(t, doc[key], inner)
		} else {
			doc[key] = v
		}
	}
	return doc
}

// TestSplit checks where commands end and what is a comment.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"print server", []string{"print server"}},
		{"create queue a; set queue a b = c # and no more; not this",
			[]string{"create queue a", " set queue a b = c "}},
		{`set server comment = "a; b # c"; quit`, []string{`set server comment = "a; b # c"`, " quit"}},
		{`set queue a b = 'x;"y'`, []string{`set queue a b = 'x;"y'`}},
		{"# all of it; is a comment", []string{""}},
		{"set queue a b = c#d", []string{"set queue a b = c#d"}},
		{"", []string{""}},
		{";;", []string{"", "", ""}},
	} {
		if got := SplitCommands(c.line); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.line, got, c.want)
		}
	}
}

// TestAll checks that a command affects all objects only if it says so explicitly.
func TestAll(t *testing.T) {
	for line, want := range map[string]bool{"delete queue": false, "delete queue @default": true,
		"delete queue a@default": false, "set node @ state = offline": true, "set node state = offline": false} {
		if cmd, _, err := ParseCommand(line); err != nil || cmd.All != want {
			t.Errorf("%q: got %v, %v, want %v", line, cmd.All, err, want)
		}
	}
}
