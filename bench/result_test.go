package main

import (
	"strings"
	"testing"
	"time"
)

// TestResults checks what is printed, and the table.
func TestResults(t *testing.T) {
	var printed, table strings.Builder
	b := &poolBencher{name: "freeze", results: &resultList{out: &printed}}
	b.addRow("freezing", "p50 %v  p99 %v, %s", 3*time.Millisecond, 20*time.Millisecond, "busy")
	b.addAimedRow("memory, of each", false, "4 MiB", "median %.1f MiB of %d", 5.5, 7)
	want := "freezing                                             p50 3ms  p99 20ms, busy\n" +
		"memory, of each                                      median 5.5 MiB of 7  (aim: at most 4 MiB, MISSED)\n"
	if printed.String() != want {
		t.Errorf("it printed\n%s", printed.String())
	}
	if err := b.results.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	want = "measurement,what,value,second_value,text,aim,met\n" +
		"freeze,freezing,0.003,0.02,\"p50 3ms  p99 20ms, busy\",,\n" +
		"freeze,\"memory, of each\",5.5,7,median 5.5 MiB of 7,4 MiB,false\n"
	if table.String() != want {
		t.Errorf("the table is\n%s", table.String())
	}
}
