package document

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func TestStoredOutputText(t *testing.T) {
	for _, tt := range []struct {
		of   *scheddapi.StoredOutput
		want string
	}{
		{&scheddapi.StoredOutput{OutBytes: 12, ErrBytes: 2048, Files: 3, FileBytes: 5 << 20},
			"12B of standard output, 2KiB of standard error, 3 files of 5MiB"},
		{&scheddapi.StoredOutput{Files: 1, FileBytes: 7}, "1 file of 7B"},
		{&scheddapi.StoredOutput{}, "on the checkpoint server"}, // one that does not say how much
	} {
		if got := StoredOutputOf(&scheddapi.ExitStatus{Stored: tt.of}).Text(); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.of, got, tt.want)
		}
	}
	if got := StoredOutputOf(&scheddapi.ExitStatus{}); got != nil {
		t.Errorf("nothing is stored, and the document says %v", got)
	}
}
