package image

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/image/imageref"
)

// benchLayer is an archive of size bytes. Its files are pieces of this program, so it
// compresses as the programs of an image do.
func benchLayer(b *testing.B, size int) []byte {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		b.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for i, at := 0, 0; archive.Len() < size; i++ {
		n := min(1000+i*7919%200_000, len(text)-at)
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("dir%d/file%d", i%100, i), Typeflag: tar.TypeReg,
			Mode: 0o644, Size: int64(n)}); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Write(text[at : at+n]); err != nil {
			b.Fatal(err)
		}
		if at += n; at == len(text) {
			at = 0
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return archive.Bytes()
}

// BenchmarkBuild builds an image of a gzip layer of 128 MiB on one core.
func BenchmarkBuild(b *testing.B) {
	layer := benchLayer(b, 128<<20)
	r, err := imageref.Parse("oci:" + ociLayout(b, [][]byte{layer}, nil))
	if err != nil {
		b.Fatal(err)
	}
	out, err := os.Create(filepath.Join(b.TempDir(), "image"))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b.SetBytes(int64(len(layer)))
	before := usedCPU(b)
	for b.Loop() {
		if err := out.Truncate(0); err != nil {
			b.Fatal(err)
		}
		if _, err := build(context.Background(), r, out, DefaultLimits()); err != nil {
			b.Fatal(err)
		}
	}
	gibibytes := float64(b.N) * float64(len(layer)) / (1 << 30)
	b.ReportMetric((usedCPU(b)-before).Seconds()/gibibytes, "cpu-s/GiB")
}

// usedCPU is for how long this process had a processor.
func usedCPU(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
