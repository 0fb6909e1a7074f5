package accounts

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/reporttable"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// TestUsageCSV compares the CSV of a line of usage with what the HTTP API answers. The
// test of that name in internal/web has the same line and text.
func TestUsageCSV(t *testing.T) {
	var out bytes.Buffer
	lines := []query.UsageLine{{Owner: "=ocean", Amounts: accounting.Amounts{Ended: 1, HeldCPU: 7.2e6}}}
	c := &frame.Invocation{App: &frame.App{Stdout: &out}}
	err := printCSV(c, fromReport(reporttable.Usage([]string{"owner"})), lines)
	want := "owner,core_hours,cpu_hours,used_percent,gpu_hours,lost_core_hours,ended,failed,mean_wait\n" +
		"'=ocean,2.00,0.00,0.0,0.00,0.00,1,0,\n"
	if got := out.String(); err != nil || got != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
}
