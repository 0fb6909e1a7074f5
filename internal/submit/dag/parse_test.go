package dag

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// wholeLanguage has every command at least once.
const wholeLanguage = `# a comment
  // another one
JOB A a.sub
node B b.sub DIR sub/dir NOOP
Job "C" 'c d.sub' DONE
JOB D {
    executable = /bin/sleep
    # queue is below
    queue 1
} NOOP DIR there
FINAL F f.sub
PROVISIONER P p.sub
SERVICE S s.sub DIR one/two
SUBDAG EXTERNAL inner inner.dag DIR sub NOOP DONE
SPLICE spliced splice.dag DIR some
SUBMIT-DESCRIPTION echo @=end
    executable = /bin/echo
@end
JOB E echo
PARENT A CHILD B C
parent B C child D
PARENT D CHILD E
WEAK PARENT E CHILD inner spliced
SCRIPT DEFER 3 20 DEBUG out.txt ALL PRE A my.sh
SCRIPT DEBUG err.txt stderr Defer -1 5 post B my.sh $JOB "this is a test"   ` + `
SCRIPT HOLD E hold.sh
RETRY A 100 UNLESS-EXIT 2
RETRY B 42
ABORT-DAG-ON B 32 RETURN 8
ABORT_DAG_ON C 5
TOLERANCE A 3 FAIL-FAST
TOLERANCE B 25%
VARS A PREPEND foo = Bar    baz= "f o\"o"  k=v a =32 +attr="'1'"
VARS B APPEND a="woah =!= UNDEFINED" test='12\'34' empty=""
PRIORITY D -82
PRIORITY E 5000
PRE-SKIP E 12
SAVE_POINT_FILE B
SAVE-POINT-FILE C ../custom/important.save
CATEGORY C few
CATEGORY spliced+N +global
MAXJOBS few 2
MAXJOBS +global 7
CONFIG dag.conf
DOT visual.dot
DOT more.dot UPDATE OVERWRITE INCLUDE header.dot
NODE_STATUS_FILE status 82 ALWAYS-UPDATE 1000
ENV SET  foo=bar;x=1
ENV GET HOME PATH
DONE A
INCLUDE more.inc
JOBSTATE_LOG some.log
SET_JOB_ATTR Project = "x y"
`

func TestWholeLanguage(t *testing.T) {
	flow := parseGood(t, textFiles{"x.dag": wholeLanguage, "some/splice.dag": "JOB N n.sub DIR deep\nPIN_IN N 1",
		"more.inc": "JOB last l.sub\nPARENT inner CHILD last"})
	if got, want := flow.arcs(), "A>B A>C B>D C>D D>E inner>last E~inner E~spliced+N"; !sameWords(got, want) {
		t.Errorf("got the arcs %s, want %s", got, want)
	}
	var got []string
	for id, n := range flow.Graph.Nodes() {
		file, inline := flow.Description(n)
		if inline != nil {
			file = fmt.Sprintf("%q of line %d", inline.Name, inline.Line)
		}
		s := flow.Settings[n.Settings]
		got = append(got, fmt.Sprintf("%s %s: %s in %q, flags %d, retry %d %v, priority %d, abort %v %v, skip %v, "+
			"tolerance %d %v %v, save %q, category %q", n.Kind, flow.Graph.Name(id), file,
			flow.Texts.Text(s.Directory), n.Flags, n.Retry, s.UnlessExit, n.Priority, s.AbortOn, s.AbortReturn,
			s.PreSkip, s.Tolerance, s.ToleranceIsShare, s.FailsFast, flow.Texts.Text(s.SavePoint),
			flow.Categories[n.Category].Name))
		for kind, number := range s.Scripts {
			if number > 0 {
				c := flow.Scripts[number]
				got = append(got, fmt.Sprintf("  %v %q after %d at %v, output %d to %q", ScriptKind(kind),
					flow.Texts.Text(c.Command), c.DeferSeconds, c.DeferStatus, c.DebugOutput,
					flow.Texts.Text(c.DebugFile)))
			}
		}
		for _, v := range flow.Variables(n) {
			got = append(got, fmt.Sprintf("  %s = %s (%d)", flow.Texts.Text(v.Name), flow.Texts.Text(v.Value),
				v.Placement))
		}
	}
	got = append(got, fmt.Sprintf("%+v %+v", flow.DotFiles, flow.StatusFile), fmt.Sprintf("%q %q %q %+v",
		flow.JobstateLog, flow.ConfigFile, flow.Attributes, flow.Environment))
	want := strings.Split(strings.TrimSpace(wholeLanguageFlow), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i, want := range []int{-1, 2, 7} {
		if c := flow.Categories[i]; c.MaxJobs != want {
			t.Errorf("category %d, %q, has %d jobs, want %d", i, c.Name, c.MaxJobs, want)
		}
	}
	if text := flow.Inline[0].Text; text != "    executable = /bin/sleep\n    # queue is below\n    queue 1\n" {
		t.Errorf("got the description %q", text)
	}
}

const wholeLanguageFlow = `
JOB A: a.sub in "", flags 1, retry 100 {2 true}, priority 0, abort {0 false} {0 false}, skip {0 false}, tolerance 3 false true, save "", category ""
  PRE "my.sh" after 20 at {3 true}, output 3 to "out.txt"
  foo = Bar (1)
  baz = f o"o (1)
  k = v (1)
  a = 32 (1)
  My.attr = '1' (1)
JOB B: b.sub in "sub/dir", flags 2, retry 42 {0 false}, priority 0, abort {32 true} {8 true}, skip {0 false}, tolerance 25 true false, save "B-x.dag.save", category ""
  POST "my.sh $JOB \"this is a test\"" after 5 at {-1 true}, output 2 to "err.txt"
  a = woah =!= UNDEFINED (2)
  test = 12'34 (2)
  empty =  (2)
JOB C: c d.sub in "", flags 1, retry 0 {0 false}, priority 0, abort {5 true} {0 false}, skip {0 false}, tolerance 0 false false, save "../custom/important.save", category "few"
JOB D: "" of line 7 in "there", flags 2, retry 0 {0 false}, priority -82, abort {0 false} {0 false}, skip {0 false}, tolerance 0 false false, save "", category ""
FINAL F: f.sub in "", flags 0, retry 0 {0 false}, priority 0, abort {0 false} {0 false}, skip {0 false}, tolerance 0 false false, save "", category ""
PROVISIONER P: p.sub in "", flags 0, retry 0 {0 false}, priority 0, abort {0 false} {0 false}, skip {0 false}, tolerance 0 false false, save "", category ""
SERVICE S: s.sub in "one/two", flags 0, retry 0 {0 false}, priority 0, abort {0 false} {0 false}, skip {0 false}, tolerance 0 false false, save "", category ""
SUBDAG inner: inner.dag in "sub", flags 3, retry 0 {0 false}, priority 0, abort {0 false} {0 false}, skip {0 false}, tolerance 0 false false, save "", category ""
JOB spliced+N: n.sub in "some/deep", flags 0, retry 0 {0 false}, priority 0, abort {0 false} {0 false}, skip {0 false}, tolerance 0 false false, save "", category "+global"
JOB E: "echo" of line 17 in "", flags 0, retry 0 {0 false}, priority 1024, abort {0 false} {0 false}, skip {12 true}, tolerance 0 false false, save "", category ""
  HOLD "hold.sh" after 0 at {0 false}, output 0 to ""
JOB last: l.sub in "", flags 0, retry 0 {0 false}, priority 0, abort {0 false} {0 false}, skip {0 false}, tolerance 0 false false, save "", category ""
[{Name:visual.dot Header: IsUpdated:false Overwrite:true} {Name:more.dot Header:header.dot IsUpdated:true Overwrite:true}] {Name:status MinInterval:1000 IsAlways:true}
"some.log" "dag.conf" ["Project = \"x y\""] [{Text:foo=bar;x=1 IsSet:true} {Text:HOME PATH IsSet:false}]
`

func sameWords(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// TestLines holds the forms of lines: their ends, continuations and comments.
func TestLines(t *testing.T) {
	for _, text := range []string{
		"JOB A d\nJOB B d\nPARENT A CHILD B\n", "JOB A d\nJOB B d\nPARENT A CHILD B",
		"JOB A d\r\nJOB B d\r\nPARENT A CHILD B\r\n",
		"\ufeffJOB A d\n\n\t \nJOB B d\n PARENT\tA\tCHILD\tB \n# x\n//\n\n",
		"PARENT A CHILD B\nJOB A d\nJOB B d", "JOB A d\nJOB B \\\n  d\nPARENT A \\\r\nCHILD \\\n\\\nB \\",
		"JOB A d\nJOB B d # no comment here is wanted\nPARENT A CHILD B",
		"JOB A d\n# comment \\\nJOB B d\nPARENT A CHILD B",
	} {
		flow, diags := parseText(text)
		if strings.Contains(text, "no comment") {
			if diags.Errors != 1 || diags.List[0].Line != 2 {
				t.Errorf("%q: got %v", text, diags.List)
			}
			continue
		}
		if diags.HasErrors() || flow.arcs() != "A>B" {
			t.Errorf("%q: got %s, %v", text, flow.arcs(), diags.List)
		}
	}
	_, diags := parseText("JOB A d\n\nJOB B \\\nd \\\nmore\nRETRY C 1")
	if len(diags.List) != 2 || diags.List[0].Line != 3 || diags.List[1].Line != 6 {
		t.Errorf("got %v", diags.List)
	}
	_, diags = parseText("JOB A d\n\x00\x01\x7fELF\nJUNK\n")
	if len(diags.List) != 1 || diags.List[0].Summary != "this is not a text file" {
		t.Errorf("got %v", diags.List)
	}
	long := "PARENT A CHILD" + strings.Repeat(" B", 300_000)
	flow, diags := parseText("JOB A d\nJOB B d\n" + long + "\nRETRY B 1\n")
	if diags.HasErrors() || flow.arcs() != "A>B" || flow.node(t, "B").Retry != 1 {
		t.Errorf("a long line: got %s, %v", flow.arcs(), diags.List)
	}
}

// TestAllNodes holds that of two commands the later counts, and what ALL_NODES leaves
// out.
func TestAllNodes(t *testing.T) {
	flow := parseGood(t, textFiles{"x.dag": `RETRY A 5
SCRIPT PRE A own.sh
VARS A name="A" other="1"
RETRY ALL_NODES 3 UNLESS-EXIT 9
RETRY B 7
VARS all_nodes name="X"
VARS B name="b"
SCRIPT PRE ALL_NODES all.sh
SCRIPT POST B post.sh
PRIORITY ALL_NODES 4
ABORT-DAG-ON ALL_NODES 3
PRE_SKIP ALL_NODES 2
TOLERANCE ALL_NODES 2
CATEGORY ALL_NODES c
MAXJOBS c 1
JOB A d
SPLICE S s.dag
JOB B d
FINAL F d
SERVICE V d
JOB C d
PARENT A CHILD C
PARENT A B CHILD C S
`, "s.dag": "JOB N d\nRETRY ALL_NODES 1\nJOB M d"})
	for name, want := range map[string]string{"A": "3 9 4 all.sh X", "B": "7 none 4 all.sh b", "C": "3 9 4 all.sh X",
		"F": "0 none 0  ", "V": "0 none 0  ", "S+N": "1 none 0  ", "S+M": "1 none 0  "} {
		n := flow.node(t, name)
		s := flow.Settings[n.Settings]
		unless, value := "none", ""
		if s.UnlessExit.IsSet {
			unless = fmt.Sprint(s.UnlessExit.Code)
		}
		for _, v := range flow.Variables(n) {
			if flow.Texts.Text(v.Name) == "name" {
				value = flow.Texts.Text(v.Value)
			}
		}
		got := fmt.Sprintf("%d %s %d %s %s", n.Retry, unless, n.Priority,
			flow.Texts.Text(flow.Scripts[s.Scripts[PreScript]].Command), value)
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if all := want[len(want)-1] != ' '; s.HasTolerance != all || s.PreSkip.IsSet != all || s.AbortOn.IsSet != all ||
			(n.Category != 0) != all {
			t.Errorf("%s: got %+v", name, s)
		}
	}
	if post := flow.Settings[flow.node(t, "A").Settings].Scripts[PostScript]; post != 0 {
		t.Errorf("A has the POST script of B")
	}
	if len(flow.Settings) > 20 {
		t.Errorf("%d records of settings for 3 nodes", len(flow.Settings))
	}
	if shared := flow.node(t, "C").Settings; shared == 0 || flow.Graph.Node(flow.Final).Kind != graph.FinalNode {
		t.Errorf("C has no settings")
	}
}
