package provision

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// TestReadEnds checks that the exit status which a script has written counts. It does not
// where the other system says that the job runs.
func TestReadEnds(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"k1.end": "0\n", "k2.end": "3\n", "k3.end": "x\n", "k5.end": "0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := &providerWorker{settings: provider.Settings{Directory: dir}}
	answers := map[string]plan.OuterStatus{"2": {ID: "2", State: plan.OuterEnded, Text: "FAILED"},
		"3": {ID: "3", State: plan.OuterEnded, Text: "gone"}, "5": {ID: "5", State: plan.OuterRunning}}
	if err := w.readEnds(t.Context(), []string{"k1", "k2", "k3", "k4", "k5"}, []string{"1", "2", "3", "4", "5"},
		answers); err != nil {
		t.Fatal(err)
	}
	if a := answers["1"]; a.State != plan.OuterEnded || !a.Succeeded || a.Text != "exit status 0" {
		t.Errorf("%+v", a)
	}
	if a := answers["2"]; a.Succeeded || a.Text != "FAILED, exit status 3" {
		t.Errorf("%+v", a)
	}
	if a := answers["3"]; a.Succeeded || a.Text != "gone" {
		t.Errorf("%+v", a)
	}
	if a := answers["5"]; a.State != plan.OuterRunning || a.Succeeded {
		t.Errorf("a job that runs: %+v", a)
	}
	if _, ok := answers["4"]; ok {
		t.Errorf("an answer without a file")
	}
	w.dir = dir + "/none"
	if err := w.readEnds(t.Context(), []string{"k9"}, []string{"9"}, answers); err != nil {
		t.Errorf("without the directory: %v", err)
	}
}
