package dag

import (
	"fmt"
	"strings"
	"testing"
)

// TestSplices holds the names of spliced nodes, and what a splice is in a dependency.
func TestSplices(t *testing.T) {
	diamond := "JOB A d\nJOB B d\nJOB C d\nJOB D d\nPARENT A CHILD B C\nPARENT B C CHILD D\nSERVICE S d\n"
	for _, test := range []struct {
		name, top, want string
		more            textFiles
	}{
		{"between", "JOB X d\nJOB Y d\nSPLICE M diamond.dag\nPARENT X CHILD M\nPARENT M CHILD Y",
			"X>M+A M+D>Y M+A>M+B M+A>M+C M+B>M+D M+C>M+D", nil},
		{"beside itself", "SPLICE M line.dag\nSPLICE N line.dag\nPARENT M CHILD N", "M+1>M+2 N+1>N+2 M+2>N+1", nil},
		{"many to many", "SPLICE M wide.dag\nSPLICE N wide.dag\nPARENT M CHILD N", "M+1>* M+2>* *>N+1 *>N+2", nil},
		{"a node within", "SPLICE M diamond.dag\nJOB X d\nPARENT M+B CHILD X\nRETRY M+C 2",
			"M+B>X M+A>M+B M+A>M+C M+B>M+D M+C>M+D", nil},
		{"nested", "SPLICE T nest.dag\nJOB X d\nPARENT X CHILD T\n", "X>T+P X>T+M+1 T+M+1>T+M+2 T+M+2>T+Q",
			textFiles{"nest.dag": "JOB P d\nJOB Q d\nSPLICE M line.dag\nPARENT M CHILD Q"}},
		{"before it is defined", "PARENT X CHILD M\nSPLICE M line.dag\nJOB X d", "X>M+1 M+1>M+2", nil},
		{"weakly", "JOB X d\nSPLICE M wide.dag\nWEAK PARENT M CHILD X", "M+1~X M+2~X", nil},
		{"included twice", "INCLUDE names.inc\nSPLICE M incl.dag", "P>Q M+P>M+Q",
			textFiles{"names.inc": "JOB P d\nJOB Q d\nPARENT P CHILD Q", "incl.dag": "INCLUDE names.inc"}},
		{"connected", "SPLICE A a.dag\nSPLICE B b.dag\nSPLICE C c.dag\nCONNECT A B\nCONNECT B C",
			"A+1>B+1 A+1>B+2 A+2>B+3 B+1>C+1 B+2>C+1 B+3>C+1", textFiles{
				"a.dag": "JOB 1 d\nJOB 2 d\nPIN_OUT 1 1\nPIN_OUT 2 2",
				"b.dag": "JOB 1 d\nJOB 2 d\nJOB 3 d\nPIN_IN 1 1\nPIN_IN 2 1\nPIN_IN 3 2\nPIN_OUT 1 1\nPIN_OUT 2 2\n" +
					"PIN_OUT 3 3",
				"c.dag": "JOB 1 d\nPIN_IN 1 1\nPIN_IN 1 2\nPIN_IN 1 3"}},
	} {
		files := textFiles{"x.dag": test.top, "diamond.dag": diamond, "line.dag": "JOB 1 d\nJOB 2 d\nPARENT 1 CHILD 2",
			"wide.dag": "JOB 1 d\nJOB 2 d"}
		for name, text := range test.more {
			files[name] = text
		}
		if got := parseGood(t, files).arcs(); !sameWords(got, test.want) {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// TestSpliceDepth holds how deep splices may nest, and that one file within itself is
// refused with the chain of files.
func TestSpliceDepth(t *testing.T) {
	files := textFiles{"64.dag": "JOB n d"}
	for i := range maxSpliceDepth {
		files[fmt.Sprintf("%d.dag", i)] = fmt.Sprintf("SPLICE s %d.dag", i+1)
	}
	flow, diags := Parse(files, []string{"0.dag"}, ParseOptions{SkipFileTests: true})
	name := strings.Repeat("s+", maxSpliceDepth) + "n"
	if _, ok := flow.Graph.Find([]byte(name)); !ok || diags.HasErrors() {
		t.Errorf("64 splices: got %v", diags.List)
	}
	files["top.dag"] = "SPLICE s 0.dag"
	if _, diags = Parse(files, []string{"top.dag"}, ParseOptions{SkipFileTests: true}); diags.Errors == 0 ||
		diags.List[0].Summary != "files nest deeper than 64" {
		t.Errorf("65 splices: got %v", diags.List)
	}
	_, diags = Parse(textFiles{"a.dag": "SPLICE x d/b.dag", "d/b.dag": "SPLICE y ../a.dag DIR d/e",
		"d/a.dag": "INCLUDE ../../a.dag"}, []string{"a.dag"}, ParseOptions{SkipFileTests: true})
	if diags.Errors != 1 || !strings.Contains(diags.List[0].Detail, "a.dag → d/b.dag → d/a.dag → a.dag") {
		t.Errorf("a cycle of files: got %v", diags.List)
	}
}

// TestCycles holds that the nodes of one cycle are named.
func TestCycles(t *testing.T) {
	for text, want := range map[string]string{
		"PARENT A CHILD A":                                          "A → A",
		"PARENT A CHILD B\nPARENT B CHILD A":                        "A → B → A",
		"PARENT A CHILD B\nPARENT B CHILD C\nWEAK PARENT C CHILD B": "B → C → B",
		"PARENT A B CHILD C D\nPARENT D CHILD B":                    "B → D → B",
	} {
		_, diags := parseText("JOB A d\nJOB B d\nJOB C d\nJOB D d\n" + text)
		if diags.Errors != 1 || !strings.HasSuffix(diags.List[0].Summary, ": "+want) || diags.List[0].Source == "" {
			t.Errorf("%s: got %v, want %s", text, diags.List, want)
		}
	}
}

// TestSeveralFiles holds the names of nodes of several DAG files, and the directories of
// files.
func TestSeveralFiles(t *testing.T) {
	files := textFiles{"p/a.dag": "JOB A a.sub\nINCLUDE i.dag\nCATEGORY A c\nMAXJOBS c 1\n", "p/i.dag": "JOB I i.sub",
		"b.dag": "JOB A b.sub\nJOB B b.sub\nPARENT A CHILD B\nSPLICE S p/s.dag\n", "p/s.dag": "JOB A s.sub",
		"p/a.sub": "", "p/i.sub": "", "b.sub": "", "s.sub": ""}
	flow, diags := Parse(files, []string{"p/a.dag", "b.dag"}, ParseOptions{UseDirectory: true})
	if len(diags.List) > 0 {
		t.Fatalf("got %v", diags.List)
	}
	for name, want := range map[string]string{"0.A": "p", "0.I": "p", "1.A": ".", "1.B": ".", "1.S+A": "."} {
		n := flow.node(t, name)
		if got := flow.Texts.Text(flow.Settings[n.Settings].Directory); got != want {
			t.Errorf("%s is in %q, want %q", name, got, want)
		}
	}
	if got := flow.arcs(); got != "1.A>1.B" {
		t.Errorf("got the arcs %s", got)
	}
	if _, diags = Parse(textFiles{"x.dag": "JOB a+b d"}, []string{"x.dag"},
		ParseOptions{AnyNodeName: true, SkipFileTests: true}); len(diags.List) > 0 {
		t.Errorf("got %v", diags.List)
	}
}
