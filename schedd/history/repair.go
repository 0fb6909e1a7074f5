package history

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/dbfile"
)

// fileKind is what dbfile must know of the history of a schedd.
func fileKind(host string) dbfile.Kind {
	return dbfile.Kind{
		What:    "history",
		Buckets: []string{string(bucketJobs), string(bucketKeys), string(bucketOwners), string(bucketRows), string(bucketEnded)},
		Name:    func(d *dbfile.Damage) string { return nameOf(host, d) },
	}
}

// nameOf names what a damage hits: a record by its job, the rest, which is made of the records, as one.
func nameOf(host string, d *dbfile.Damage) string {
	job := func(key []byte) roost.JobID { return roost.JobID{Seq: binary.BigEndian.Uint64(key), Host: host} }
	switch {
	case d.Bucket != string(bucketJobs):
		return "index " + d.Bucket
	case !d.Some && len(d.From) == 8:
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

// Repair takes out of the history in dir what is damaged, and makes its indexes anew; dry only says what would be. It returns nil where nothing is
// damaged. No schedd may run.
func Repair(dir, host string, now time.Time, dry bool) (*dbfile.Report, error) {
	path, kind := filepath.Join(dir, FileName), fileKind(host)
	whole := map[uint64]bool{}
	damage, err := dbfile.Inspect(path, kind, func(bucket string, key, value []byte) {
		if _, err := decode(value); err == nil && bucket == string(bucketJobs) && len(key) == 8 {
			whole[binary.BigEndian.Uint64(key)] = true
		}
	})
	if err != nil || damage == nil {
		return nil, err
	}
	report := &dbfile.Report{Path: path, Damages: damage.Names()}
	for i := range damage.Damages {
		if d := &damage.Damages[i]; d.Bucket == string(bucketJobs) {
			report.Actions = append(report.Actions, nameOf(host, d)+" is taken out")
		}
	}
	report.Actions = append(report.Actions, fmt.Sprintf("the indexes are made anew; %d jobs are kept", len(whole)))
	if !dry {
		report.Aside, err = dbfile.Replace(path, kind, now, func(w *dbfile.Writer) error {
			_, err := dbfile.Inspect(path, kind, func(bucket string, key, value []byte) { salvage(w, whole, bucket, key, value) })
			return err
		})
	}
	return report, err
}

// salvage writes a record and what finds it.
func salvage(w *dbfile.Writer, whole map[uint64]bool, bucket string, key, value []byte) {
	if len(key) != 8 || !whole[binary.BigEndian.Uint64(key)] {
		return
	}
	switch bucket {
	case string(bucketRows):
		w.Put(bucket, key, value)
	case string(bucketJobs):
		w.Put(bucket, key, value)
		r, err := decode(value)
		if err != nil {
			return
		}
		seq := binary.BigEndian.Uint64(key)
		w.Put(string(bucketKeys), keyOf(r.Key, seq), nil)
		w.Put(string(bucketEnded), endKey(value[:8], key), nil)
		if owner, known := ownerOf(r.Snapshot); known {
			w.Put(string(bucketOwners), keyOf(owner, seq), nil)
		}
	}
}
