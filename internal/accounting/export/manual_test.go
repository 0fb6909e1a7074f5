package export

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/accounting/accountingtest"
)

// manualEntries reads the entries of a section of roost-accounting(7) with their texts,
// in order.
func manualEntries(t *testing.T, section string) (entries []string) {
	t.Helper()
	_, text, found := strings.Cut(manual(t), "\n.SS "+section+"\n")
	if !found {
		t.Fatalf("roost-accounting(7) has no section %s", section)
	}
	text, _, _ = strings.Cut(text, "\n.S")
	for _, entry := range strings.Split(text, ".TP\n.B ")[1:] {
		entries = append(entries, strings.TrimSpace(strings.ReplaceAll(entry, `\-`, "-")))
	}
	return entries
}

func manual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../man/roost-accounting.7")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func checkTable[T any](t *testing.T, table *Table[T]) {
	t.Helper()
	var want []string
	for _, c := range table.Columns {
		want = append(want, c.Name+"\n"+c.About)
	}
	if got := manualEntries(t, `"Table `+table.Name+`"`); !slices.Equal(got, want) {
		t.Errorf("roost-accounting(7), table %s:\n%q\nand the code has\n%q", table.Name, got, want)
	}
}

// TestManual holds that roost-accounting(7) has every table with every column and its
// meaning, and no other.
func TestManual(t *testing.T) {
	checkTable(t, Jobs())
	checkTable(t, Attempts())
	checkTable(t, Segments())
	checkTable(t, Usage())
	checkTable(t, Machines())
	trace := newTrace(t, borgOptions)
	checkTable(t, trace.collectionTable())
	checkTable(t, trace.instanceTable())
	checkTable(t, trace.usageTable())
	checkTable(t, trace.machineTable())
	checkTable(t, trace.attributeTable())
	if got := strings.Count(manual(t), "\n.SS \"Table "); got != 10 {
		t.Errorf("roost-accounting(7) has %d tables, want 10", got)
	}
	if causes := strings.Join(causeNames()[1:], ", "); !strings.Contains(manual(t), "are: "+causes+".\n") {
		t.Errorf("roost-accounting(7) does not have the causes %s", causes)
	}
}

// TestPBSManual holds that roost-accounting(7) has the attributes and types of records of
// the log. The log of the sample has them all.
func TestPBSManual(t *testing.T) {
	var want []string
	for _, a := range pbsAttributes() {
		want = append(want, a.Name+"\n"+a.About)
	}
	if got := manualEntries(t, "Attributes of records"); !slices.Equal(got, want) {
		t.Errorf("roost-accounting(7) has the attributes\n%q\nand the code has\n%q", got, want)
	}
	var b bytes.Buffer
	if _, err := writePBS(&b, sampleRecords(t, accountingtest.Sample()), time.UTC); err != nil {
		t.Fatal(err)
	}
	for _, a := range pbsAttributes() {
		if !strings.Contains(b.String(), ";"+a.Name+"=") && !strings.Contains(b.String(), " "+a.Name+"=") {
			t.Errorf("no record of the sample has %s", a.Name)
		}
	}
	for _, found := range regexp.MustCompile(`[; ]([A-Za-z_.]+)=`).FindAllStringSubmatch(b.String(), -1) {
		if !slices.ContainsFunc(pbsAttributes(), func(a pbsAttribute) bool { return a.Name == found[1] }) {
			t.Errorf("records have %s, and the table does not", found[1])
		}
	}
	kinds := map[string]bool{}
	for line := range strings.Lines(b.String()) {
		kinds[strings.Split(line, ";")[1]] = true
	}
	for _, entry := range manualEntries(t, "Types of records") {
		if kind := entry[:1]; kinds[kind] {
			delete(kinds, kind)
		} else {
			t.Errorf("the sample has no record of type %s", kind)
		}
	}
	if len(kinds) > 0 {
		t.Errorf("roost-accounting(7) does not have the types %v", kinds)
	}
}

// TestSWFManual holds that roost-accounting(7) has the fields of the header that are
// written.
func TestSWFManual(t *testing.T) {
	var names []string
	for _, h := range swfOptions.headers() {
		if !slices.Contains(names, h.Name) {
			names = append(names, h.Name)
		}
	}
	last := len(names) - 1
	want := "The header has the fields " + strings.Join(names[:last], ", ") + " and " + names[last] + ".\n"
	if !strings.Contains(manual(t), want) {
		t.Errorf("roost-accounting(7) does not say: %s", want)
	}
}
