package store

import "sync/atomic"

// storeCounts counts what happens in a store since it was opened.
type storeCounts struct {
	collectedBlobs, collectedBytes, damagedChunks atomic.Int64
}

// Totals is what a store has and did, for its metrics.
type Totals struct {
	Blobs      int   // whole ones
	Unfinished int   // blobs that are being received
	Bytes      int64 // of the whole blobs
	Pins       int
	HasObjects bool
	Unsent     int // whole blobs that the object store does not have yet

	Owned map[string]int64 // bytes of whole blobs by owner

	// since the store was opened
	CollectedBlobs, CollectedBytes int64
	ObjectFailures                 int64 // requests to the object store that failed
	DamagedChunks                  int64 // that were read and were not what was stored
}

// Totals sums up the store.
func (d *Directory) Totals() Totals {
	t := Totals{Owned: map[string]int64{}, CollectedBlobs: d.counts.collectedBlobs.Load(),
		CollectedBytes: d.counts.collectedBytes.Load(), DamagedChunks: d.counts.damagedChunks.Load()}
	d.mu.Lock()
	defer d.mu.Unlock()
	t.Blobs, t.Unfinished = len(d.blobs), len(d.incoming)
	if d.copies != nil {
		t.HasObjects, t.ObjectFailures = true, d.copies.failures.Load()
	}
	for _, b := range d.blobs {
		t.Bytes += b.size
		if d.copies != nil && b.stored == "" {
			t.Unsent++
		}
		for _, o := range b.owners {
			t.Owned[o] += b.size
		}
	}
	for _, owners := range d.pins {
		t.Pins += len(owners)
	}
	return t
}
