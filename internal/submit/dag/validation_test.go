package dag

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestValidation holds the mistakes that no line has by itself. Each is reported with its
// file, its line and its command.
func TestValidation(t *testing.T) {
	files := textFiles{"x.dag": `# every line is right by itself
FINAL f d
FINAL f2 d
PROVISIONER p d
PROVISIONER p2 d
SERVICE v d

VARS ALL_NODES name="x"
DONE ALL_NODES

SPLICE no-file none.dag
SPLICE s1 one.dag
SPLICE s2 final.dag
SPLICE s3 outer.dag
SPLICE round recursive.dag

INCLUDE none.inc
INCLUDE recursive.inc

JOB a d
JOB a d
JOB s1 d
SPLICE a one.dag

PARENT none CHILD a
PARENT a CHILD none
PARENT none CHILD none
PARENT f p v CHILD a

RETRY s1 3
PRIORITY none 5

CATEGORY none c

CONFIG first.conf
CONFIG second.conf

CONNECT s1 s3
CONNECT s1 none

REJECT
`, "one.dag": "JOB n d\n", "final.dag": "JOB n d\nFINAL f d\n", "outer.dag": "SPLICE s inner.dag DIR sub\n",
		"sub/inner.dag": "SPLICE s innermost.dag\n", "sub/innermost.dag": "JOB m d\n\nJOB\n",
		"recursive.dag": "SPLICE again recursive.dag\n", "recursive.inc": "INCLUDE ./recursive.inc\n"}
	_, diags := Parse(files, []string{"x.dag"}, ParseOptions{})
	var got []string
	for _, d := range diags.List {
		if !d.IsWarning {
			got = append(got, fmt.Sprintf("%s:%d %s: %s", d.File, d.Line, d.Command, d.Summary))
		}
	}
	want := strings.Split(strings.TrimSpace(`
x.dag:3 FINAL: this is the second FINAL node
x.dag:4 PROVISIONER: there is no file "d"
x.dag:5 PROVISIONER: this is the second PROVISIONER node
x.dag:9 DONE: DONE is not for ALL_NODES
x.dag:11 SPLICE: the file "none.dag" cannot be read
x.dag:17 INCLUDE: the file "none.inc" cannot be read
x.dag:21 JOB: the node "a" is defined twice
x.dag:22 JOB: there is a splice "s1" already
x.dag:23 SPLICE: there is a node "a" already
x.dag:25 PARENT: these nodes are not defined, parents: "none"
x.dag:26 PARENT: these nodes are not defined, children: "none"
x.dag:27 PARENT: these nodes are not defined, parents: "none"; children: "none"
x.dag:28 PARENT: a FINAL node cannot have dependencies
x.dag:28 PARENT: a PROVISIONER node cannot have dependencies
x.dag:28 PARENT: a SERVICE node cannot have dependencies
x.dag:30 RETRY: RETRY cannot be applied to a splice
x.dag:31 PRIORITY: there is no node "none"
x.dag:33 CATEGORY: there is no node "none"
x.dag:35 CONFIG: there is no file "first.conf"
x.dag:36 CONFIG: this is the second CONFIG file
x.dag:38 CONNECT: the splice "s1" has no PIN_OUT
x.dag:39 CONNECT: there is no splice "none"
x.dag:41 REJECT: this file is marked with REJECT
final.dag:2 FINAL: a splice cannot have a FINAL node
sub/innermost.dag:1 JOB: there is no file "sub/d"
sub/innermost.dag:3 JOB: JOB has no name of a node
recursive.dag:1 SPLICE: this file is within itself
recursive.inc:1 INCLUDE: this file is within itself`), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, d := range diags.List {
		if d.Detail == "" || d.Line > 0 && d.Source == "" {
			t.Errorf("%+v lacks its remedy or its line", d)
		}
	}
}

// TestParseErrors holds the mistakes in the form of lines, of which there are four in one
// file.
func TestParseErrors(t *testing.T) {
	_, diags := parseText("# wrong lines\nJOB all_nodes d\nFINAL x+y d\nRETRY\nNONE such a command\n")
	var got []string
	for _, d := range diags.List {
		got = append(got, fmt.Sprintf("%d %s", d.Line, d.Command))
	}
	if want := []string{"2 JOB", "3 FINAL", "4 RETRY", "5 "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	_, diags = Parse(textFiles{}, []string{"none.dag"}, ParseOptions{})
	if len(diags.List) != 1 || !diags.List[0].IsMissing || diags.List[0].File != "none.dag" || diags.Missing != 1 {
		t.Errorf("got %+v", diags)
	}
	if _, diags = parseText("# nothing\n"); diags.Errors != 1 {
		t.Errorf("a file without nodes: got %v", diags.List)
	}
}

// TestBlocks holds what is said of inline descriptions that do not end.
func TestBlocks(t *testing.T) {
	for text, want := range map[string]string{
		"JOB A {\n executable = x\n# }\nJOB B d\n":                         "1 the submit description has no end",
		"SUBMIT-DESCRIPTION e @=end\n executable = x\nJOB A d":             "1 the submit description has no end",
		"JOB A { executable = x\n}\n":                                      "1 the description begins on the next line",
		"JOB A {\n executable = x\n} DONE more\nJOB B d":                   `3 "more" is one word too many`,
		"SUBMIT-DESCRIPTION e {\n executable = x\n} more\nJOB A e\n":       `3 "more" is one word too many`,
		"SUBDAG EXTERNAL A {\nJOB B d\nJOB\n}\n":                           "3 JOB has no name of a node",
		"JOB PARENT {\n RETRY\n}\nJOB B d\n":                               `1 a node cannot be called "PARENT"`,
		"JOB A {\n}x\n x = {\n}\nRETRY B 1\nFINAL F {\n}\nSERVICE S @=e\n": `5 there is no node "B"`,
	} {
		_, diags := parseText(text)
		got := ""
		for _, d := range diags.List {
			got = fmt.Sprintf("%d %s", d.Line, d.Summary)
			break
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestWarnings holds what is allowed and hardly meant.
func TestWarnings(t *testing.T) {
	const nodes = "JOB A d\nJOB B d\nFINAL F d\nSPLICE E empty.dag\nSPLICE L log.dag\n"
	for line, want := range map[string]string{
		"JOB a.b d":                              "this name of a node has a dot",
		"SERVICE S d DONE":                       "DONE has no effect on a SERVICE node",
		"DONE F":                                 "DONE has no effect on a FINAL node",
		"RETRY A 70000":                          "there are at most 65535 retries",
		"PRIORITY A -2000":                       "the priority is replaced by -1024",
		"VARS A x=1 X=2":                         `the variable "X" is set twice`,
		"MAXJOBS c 1":                            `no node is in the category "c"`,
		"CATEGORY A c":                           `the category "c" has no MAXJOBS`,
		"SCRIPT PRE A x.sh $NAME":                `there is no macro "$NAME"`,
		"SCRIPT PRE A x.sh $RETURN":              `only POST and HOLD scripts have "$RETURN"`,
		"SCRIPT POST A x.sh $job $return a$b":    "",
		"JOBSTATE_LOG a\nJOBSTATE_LOG b":         "JOBSTATE_LOG is given twice",
		"PARENT A CHILD E":                       `the splice "E" has no nodes`,
		"CATEGORY A c\nMAXJOBS c 1\nMAXJOBS c 2": `MAXJOBS of "c" is set twice`,
		"SUBMIT-DESCRIPTION e {\n}\nSUBMIT-DESCRIPTION e {\n}": `the submit description "e" is defined twice`,
	} {
		_, diags := Parse(textFiles{"x.dag": nodes + line, "empty.dag": "", "log.dag": "JOBSTATE_LOG x\nJOB A d"},
			[]string{"x.dag"}, ParseOptions{SkipFileTests: true})
		var got []string
		for _, d := range diags.List {
			if !d.IsWarning || d.Detail == "" || d.Source == "" {
				t.Errorf("%s: got %+v", line, d)
			}
			got = append(got, d.Summary)
		}
		got = slices.DeleteFunc(got, func(s string) bool { return s == "JOBSTATE_LOG has no effect in a splice" })
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
