package dag

import (
	"strings"
	"testing"
)

// TestDOT holds the picture of a flow.
func TestDOT(t *testing.T) {
	flow := parseGood(t, textFiles{"x.dag": `JOB A d DONE
JOB B d NOOP
JOB C"" d
JOB q\ d
SUBDAG EXTERNAL D d
FINAL F d
SERVICE S d
PROVISIONER P d
PARENT A B CHILD C "q\\"
WEAK PARENT C CHILD D
`})
	var b strings.Builder
	if err := WriteDOT(&b, flow, `x "1"`); err != nil {
		t.Fatal(err)
	}
	if want := `digraph flow {
  label="x \"1\"";
  node [shape=box];
  "A" [style=filled fillcolor=lightgrey];
  "B" [style=dotted];
  "C";
  "q\\";
  "D" [shape=folder];
  "F" [peripheries=2];
  "S" [shape=ellipse];
  "P" [shape=house];
  " 8" [shape=point];
  "A" -> " 8";
  "B" -> " 8";
  "C" -> "D" [style=dashed];
  " 8" -> "C";
  " 8" -> "q\\";
}
`; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
