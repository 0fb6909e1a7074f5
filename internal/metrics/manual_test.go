package metrics

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var rewriteManual = flag.Bool("rewrite", false, "write the lists of metrics in roost-metrics(7) anew")

const manualFile = "../../man/roost-metrics.7"

// TestManual compares the lists in roost-metrics(7) with what the daemons export: names,
// labels, types and texts.
func TestManual(t *testing.T) {
	text, err := os.ReadFile(manualFile)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = ".\\\" BEGIN\n", ".\\\" END\n"
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s: the marks of the lists are missing", manualFile)
	}
	want := manualLists(t)
	if got == want {
		return
	}
	if *rewriteManual {
		if err := os.WriteFile(manualFile, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the lists of the manual are not what is exported; go test ./internal/metrics -run Manual -rewrite " +
		"writes them anew")
}

// manualLists returns the sections of the manual, one for each daemon.
func manualLists(t *testing.T) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(".SH " + strings.ToUpper(strings.ReplaceAll(part, "_", " ")) + "\n")
		r := partFamilies(t, part)
		if part != "web" && part != usersPart { // they show no certificate of the pool
			r.addCertificateExpiry(nil)
		}
		for _, f := range r.Families() {
			b.WriteString(".TP\n.B " + strings.ReplaceAll(f.Name, "-", "\\-"))
			if len(f.Labels) > 0 {
				b.WriteString("{" + strings.Join(f.labelNames(), ",") + "}")
			}
			b.WriteString("\n" + strings.ToUpper(string(f.Type[:1])) + string(f.Type[1:]) + ".\n" + f.Help + "\n")
			for _, l := range f.Labels {
				if len(l.Values) > 0 && l.Name != "band" && l.Name != "cause" && l.Name != "version" {
					b.WriteString("The label " + l.Name + " is " + orList(l.Values) + ".\n")
				}
			}
		}
	}
	return b.String()
}

// orList joins words as prose does.
func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
