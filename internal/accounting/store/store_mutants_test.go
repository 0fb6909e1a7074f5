//go:build plants

package store

import (
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
)

// TestStoreMutants ingests entries after their hours were summed up. They give the digest
// of a clean run, and with a bug that ignores them another one.
func TestStoreMutants(t *testing.T) {
	const jobs = 20
	want := cleanDigest(t, Options{Directory: t.TempDir()}, jobs)
	for _, b := range []mutant.Mutant{0, mutant.LateHoursUnmarked} {
		mutant.Activate(b)
		s := openStore(t, Options{Directory: t.TempDir()})
		must(t, s.AddRate(t.Context(), testRate()))
		must(t, s.IngestMachines(t.Context(), testMachines()))
		for source := byte(1); source <= 2; source++ {
			ingestAll(t, s, source, testFeed(source, jobs), 50)
			compute(t, s, workloadEnd)
		}
		same := slices.Equal(digest(t, s), want)
		mutant.Activate(0)
		if same != (b == 0) {
			t.Errorf("with bug %d the digest is that of a clean run: %v", b, same)
		}
		must(t, s.Close())
	}
}
