package metrics

// Where machines get the chunks of blobs from.
const (
	chunkFromServer = iota
	chunkFromMachine
)

// CheckpointServer is the metrics of a checkpoint server.
type CheckpointServer struct {
	Uploads   *LiveGauge // blobs and files that are being received
	Transfers *LiveGauge // transfers in progress, uploads too
	Snapshots *Published[CheckpointServerSnapshot]

	chunks *Counter // by source
	sent   *Counter
}

// CheckpointServerSnapshot is what a checkpoint server has at one instant.
type CheckpointServerSnapshot struct {
	Blobs, UnfinishedBlobs int
	BlobBytes              int64
	MaxBytes               int64 // 0: what the disk has room for
	Pins                   int
	Packages, Versions     int

	QuotaUsed  float64 // largest part of its quota that an owner has
	FullQuotas int     // owners that have nearly all of theirs

	// since the start
	CollectedBlobs, CollectedBytes int64
	DamagedChunks                  int64

	// of a server with an object store
	HasObjects     bool
	UnsentBlobs    int
	ObjectFailures int64 // since the start
}

// NewCheckpointServer registers the metrics of a checkpoint server with files in dir.
// With a nil registry nothing is counted.
func NewCheckpointServer(r *Registry, dir string) *CheckpointServer {
	c := &CheckpointServer{
		Uploads:   r.LiveGauge("uploads", "Images, packages, checkpoints and files that are being received."),
		Transfers: r.LiveGauge("transfers", "Transfers in progress, uploads too; of 16 at the most, others wait."),
		chunks: r.Counter("chunks_total",
			"Chunks of images and packages that the server sent, and that it had machines get from others.",
			Label{Name: "source", Values: []string{"server", "machine"}}),
		sent: r.Counter("chunk_bytes_total", "Bytes of images and packages that the server sent."),
	}
	c.Snapshots = newCheckpointServerSnapshots(r)
	r.AddDisk(dir)
	r.seal()
	return c
}

func newCheckpointServerSnapshots(r *Registry) *Published[CheckpointServerSnapshot] {
	blobs := r.Gauge("blobs",
		"Images and packages that the server has, whole ones and those of which parts are missing.",
		Label{Name: "state", Values: []string{"whole", "unfinished"}})
	bytes := r.Gauge("blob_bytes", "Bytes of the whole images and packages.")
	most := r.Gauge("max_blob_bytes", "Bytes that images and packages may have together; only where a bound is set.")
	pins := r.Gauge("pins", "Pins: an image or package that a queue uses, or that has a name, is not collected.")
	names := r.Gauge("packages", "Names of packages.")
	versions := r.Gauge("package_versions", "Versions of packages, without removed ones.")
	quota := r.Gauge("quota_used_ratio", "The largest part of what one user may store that a user has stored.")
	full := r.Gauge("full_quotas", "Users that have stored at least nine tenths of what they may.")
	collected := r.ReadCounter("collected_blobs_total", "Images and packages that were deleted because none used them.")
	freed := r.ReadCounter("collected_bytes_total", "Bytes of the images and packages that were deleted so.")
	damaged := r.ReadCounter("damaged_chunks_total",
		"Chunks that were read and were not what was stored; they are not sent to anyone.")
	unsent := r.Gauge("unsent_blobs",
		"Images and packages that are not in the object store yet; only where there is one.")
	failures := r.ReadCounter("object_failures_total",
		"Requests to the object store that failed and are made again; only where there is one.")
	return newDaemonState(r, func(to *Reading, s *CheckpointServerSnapshot) {
		if s.HasObjects {
			to.Set(unsent, float64(s.UnsentBlobs))
			to.Set(failures, float64(s.ObjectFailures))
		}
		to.Set(blobs, float64(s.Blobs), 0)
		to.Set(blobs, float64(s.UnfinishedBlobs), 1)
		to.Set(bytes, float64(s.BlobBytes))
		if s.MaxBytes > 0 {
			to.Set(most, float64(s.MaxBytes))
		}
		to.Set(pins, float64(s.Pins))
		to.Set(names, float64(s.Packages))
		to.Set(versions, float64(s.Versions))
		to.Set(quota, s.QuotaUsed)
		to.Set(full, float64(s.FullQuotas))
		to.Set(collected, float64(s.CollectedBlobs))
		to.Set(freed, float64(s.CollectedBytes))
		to.Set(damaged, float64(s.DamagedChunks))
	})
}

// SentChunk counts a chunk that the server sent.
func (c *CheckpointServer) SentChunk(bytes int) {
	c.chunks.Inc(chunkFromServer)
	c.sent.Add(float64(bytes))
}

// PlannedChunks counts chunks that a machine was told to get from another one.
func (c *CheckpointServer) PlannedChunks(n int) { c.chunks.Add(float64(n), chunkFromMachine) }
