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

// fileKind is what dbfile must know of the history of a schedd.
func fileKind(host string) boltfile.ContentKind {
	return boltfile.ContentKind{
		Description: "history",
		Buckets: []string{string(bucketJobs), string(bucketKeys), string(bucketOwners), string(bucketRows),
			string(bucketEnded)},
		Name: func(d *boltfile.DamageFinding) string { return damageName(host, d) },
	}
}

// damageName names what a damage hits: a record by its job, the rest, which is made of
// the records, as one.
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

// Repair takes out of the history in dir what is damaged, and makes its indexes anew; dry
// only says what would be. It returns nil where nothing is damaged. No schedd may run.
//
// What has one flipped bit is put right, for its checksum tells which. A job that is lost
// is named by whatever tells of it: a damaged record by its number, one that is not found
// by the indexes, which have a place for each job.
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

// repairState is what is known of the jobs of a damaged history.
type repairState struct {
	intact    map[uint64]bool // their records are
	mentioned map[uint64]bool // anything tells of them
	corrected []*boltfile.DamageFinding
}

// addRecord takes in a record that is whole.
func (r *repairState) addRecord(bucket string, key, value []byte) {
	if len(key) < 8 {
		return
	}
	seq := binary.BigEndian.Uint64(key[len(key)-8:]) // at the end of the keys of the indexes, and the key of all else
	r.mentioned[seq] = true
	if _, err := decodeRecord(value); err == nil && bucket == string(bucketJobs) && len(key) == 8 {
		r.intact[seq] = true
	}
}

// classifyDamage says what becomes of what is damaged.
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
			"jobs that nothing in the file tells of are not in the history, and which they are cannot be told")
	}
	return append(actions, fmt.Sprintf("the indexes are made anew; %d jobs are kept", len(r.intact)))
}

// writeRecord writes a record and what finds it.
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
