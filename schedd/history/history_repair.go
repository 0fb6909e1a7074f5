package history

import (
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
)

// fileKind describes the history of a schedd to package boltfile.
func fileKind(host string) boltfile.ContentKind {
	return boltfile.ContentKind{
		Description: "history",
		Buckets: []string{string(bucketJobs), string(bucketKeys), string(bucketOwners), string(bucketRows),
			string(bucketEnded)},
		Name: func(d *boltfile.DamageFinding) string { return damageName(host, d) },
	}
}

// damageName names the damaged part: the job of a record, or an index. An index is named
// as a whole, as it is rebuilt from the records.
func damageName(host string, d *boltfile.DamageFinding) string {
	job := func(key []byte) roost.JobID { return roost.JobID{Seq: binary.BigEndian.Uint64(key), Host: host} }
	switch {
	case d.Bucket != string(bucketJobs):
		return "index " + d.Bucket
	case !d.IsRange && len(d.From) == 8:
		return fmt.Sprintf("job %v", job(d.From))
	case len(d.From) >= 8 && len(d.To) >= 8:
		return fmt.Sprintf("jobs from %v to before %v", job(d.From), job(d.To))
	case len(d.From) >= 8:
		return fmt.Sprintf("all jobs from %v on", job(d.From))
	case len(d.To) >= 8:
		return fmt.Sprintf("all jobs before %v", job(d.To))
	}
	return "jobs"
}

// Repair removes damaged records from the history in dir and rebuilds its indexes. With
// dry it only reports what it would do. It returns nil if nothing is damaged. No schedd
// may run meanwhile.
//
// It corrects a record with one flipped bit, which the checksum identifies. It names each
// lost job from what mentions it: a damaged record by its number, a missing one by the
// indexes, which have an entry for each job.
func Repair(dir, host string, now time.Time, dry bool) (*boltfile.RepairReport, error) {
	path, kind := filepath.Join(dir, FileName), fileKind(host)
	r := repairState{intact: map[uint64]bool{}, mentioned: map[uint64]bool{}}
	damage, err := boltfile.InspectFile(path, kind, r.addRecord)
	if err != nil || damage == nil {
		return nil, err
	}
	report := &boltfile.RepairReport{Path: path, Damages: damage.Names(),
		Actions: r.classifyDamage(host, damage.Damages)}
	if !dry {
		report.DamagedPath, err = boltfile.ReplaceDamaged(path, kind, now, func(w *boltfile.ReplacementWriter) error {
			write := func(bucket string, key, value []byte) { r.writeRecord(w, bucket, key, value) }
			_, err := boltfile.InspectFile(path, kind, write)
			for _, d := range r.corrected {
				write(d.Bucket, d.From, d.Raw)
			}
			return err
		})
	}
	return report, err
}

// repairState contains what is known of the jobs of a damaged history.
type repairState struct {
	intact    map[uint64]bool // by job number: the record is intact
	mentioned map[uint64]bool // by job number: a record or an index mentions the job
	corrected []*boltfile.DamageFinding
}

// addRecord registers an intact record.
func (r *repairState) addRecord(bucket string, key, value []byte) {
	if len(key) < 8 {
		return
	}
	seq := binary.BigEndian.Uint64(key[len(key)-8:]) // the end of an index key, or the whole key of another bucket
	r.mentioned[seq] = true
	if _, err := decodeRecord(value); err == nil && bucket == string(bucketJobs) && len(key) == 8 {
		r.intact[seq] = true
	}
}

// classifyDamage registers the damaged records and describes what the repair does to
// each.
func (r *repairState) classifyDamage(host string, damages []boltfile.DamageFinding) (actions []string) {
	ranges, unknown := []string{}, false
	for i := range damages {
		d := &damages[i]
		switch {
		case d.Corrected:
			r.addRecord(d.Bucket, d.From, d.Raw)
			r.corrected = append(r.corrected, d)
		case d.Bucket == string(bucketJobs) && !d.IsRange && len(d.From) == 8:
			r.mentioned[binary.BigEndian.Uint64(d.From)] = true
		case d.Bucket == string(bucketJobs) && (d.From != nil || d.To != nil):
			ranges = append(ranges, damageName(host, d)+
				": those that the indexes do not name, either, are taken out without a name")
		case d.Bucket == "" || d.Bucket == string(bucketJobs):
			unknown = true
		}
	}
	if len(r.corrected) > 0 {
		actions = append(actions, fmt.Sprintf(
			"%d records are put right: one bit of each has flipped, and its checksum tells which", len(r.corrected),
		))
	}
	for _, seq := range slices.Sorted(maps.Keys(r.mentioned)) {
		if !r.intact[seq] {
			actions = append(actions, fmt.Sprintf("job %v is taken out", roost.JobID{Seq: seq, Host: host}))
		}
	}
	actions = append(actions, ranges...)
	if unknown {
		actions = append(actions,
			"other jobs may be missing from the history, and which ones is unknown")
	}
	return append(actions, fmt.Sprintf("the indexes are made anew; %d jobs are kept", len(r.intact)))
}

// writeRecord writes a record and its index entries.
func (r *repairState) writeRecord(w *boltfile.ReplacementWriter, bucket string, key, value []byte) {
	if len(key) != 8 || !r.intact[binary.BigEndian.Uint64(key)] {
		return
	}
	switch bucket {
	case string(bucketRows):
		w.Put(bucket, key, value)
	case string(bucketJobs):
		record, err := decodeRecord(value)
		if err != nil {
			return
		}
		w.Put(bucket, key, value)
		seq := binary.BigEndian.Uint64(key)
		w.Put(string(bucketKeys), submitKeyPrefix(record.Key, seq), nil)
		w.Put(string(bucketEnded), endKey(value[:8], key), nil)
		if owner, known := snapshotOwner(record.Snapshot); known {
			w.Put(string(bucketOwners), submitKeyPrefix(owner, seq), nil)
		}
	}
}
