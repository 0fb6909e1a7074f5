package document

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func TestTransferText(t *testing.T) {
	for _, c := range []struct {
		bytes, total int64
		elapsed      time.Duration
		want         string
	}{
		{0, 4 << 30, 0, "checkpoint: 0B of 4GiB, waits for its turn"},
		{0, 4 << 30, time.Minute, "checkpoint: 0B of 4GiB"},
		{1 << 20, 4 << 20, 10 * time.Millisecond, "checkpoint: 1MiB of 4MiB"},
		{1 << 30, 4 << 30, 10 * time.Second, "checkpoint: 1GiB of 4GiB, 102.4MiB/s, 30s left"},
		{4 << 30, 4 << 30, 40 * time.Second, "checkpoint: 4GiB of 4GiB, 102.4MiB/s"},
	} {
		m := &scheddapi.FileTransfer{Kind: "checkpoint", Bytes: c.bytes, Total: c.total, Elapsed: int64(c.elapsed)}
		if got := TransferText(m); got != c.want {
			t.Errorf("%d of %d in %v: %q, want %q", c.bytes, c.total, c.elapsed, got, c.want)
		}
	}
}
