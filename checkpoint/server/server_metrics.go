package server

import (
	"context"
	"time"

	"github.com/roost-batch/roost/internal/metrics"
)

const (
	// fullQuota is the part of a quota from which on the metrics count it as full.
	fullQuota = 0.9

	metricsPeriod = 5 * time.Second
)

// runMetrics makes snapshots for readers of the metrics until ctx ends.
func (s *Service) runMetrics(ctx context.Context) {
	s.metrics.Snapshots.Run(ctx, metricsPeriod, s.metricsSnapshot)
}

// metricsSnapshot returns what the server has.
func (s *Service) metricsSnapshot() (m metrics.CheckpointServerSnapshot) {
	if s.blobs != nil {
		t := s.blobs.Totals()
		m.Blobs, m.UnfinishedBlobs, m.BlobBytes, m.Pins = t.Blobs, t.Unfinished, t.Bytes, t.Pins
		m.CollectedBlobs, m.CollectedBytes = t.CollectedBlobs, t.CollectedBytes
		m.DamagedChunks, m.MaxBytes = t.DamagedChunks, s.maxBlobBytes
		m.HasObjects, m.UnsentBlobs, m.ObjectFailures = t.HasObjects, t.Unsent, t.ObjectFailures
		if most := s.images.MaxBytesOfUser; most > 0 {
			for _, bytes := range t.Owned {
				used := float64(bytes) / float64(most)
				m.QuotaUsed = max(m.QuotaUsed, used)
				if used >= fullQuota {
					m.FullQuotas++
				}
			}
		}
	}
	if s.packages != nil {
		m.Packages, m.Versions = s.packages.Count()
	}
	return m
}
