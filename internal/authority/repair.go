package authority

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost/schedd/dbfile"
)

// fileKind is what dbfile must know of the store.
func fileKind() dbfile.Kind {
	return dbfile.Kind{
		What:    "store of the authority",
		Buckets: []string{string(tokensBucket), string(issuedBucket), string(namesBucket), string(numbersBucket)},
		Name: func(d *dbfile.Damage) string {
			switch {
			case d.Bucket == string(issuedBucket) && !d.Some:
				return "certificate " + hex.EncodeToString(d.From)
			case d.Bucket == string(tokensBucket) && !d.Some:
				return fmt.Sprintf("token %.8x", d.From)
			}
			return d.Bucket
		},
	}
}

// Repair takes out of the store in dir what is damaged; dry only says what would be. It returns nil where nothing is damaged. No authority may run.
//
// A certificate whose record is damaged is revoked: it may have been, and a node that was not meant joins again. A token that is damaged is forgotten,
// so nobody can use it.
//
// Self is the name of the authority's own node, whose certificate is in its directory, and which is written down again when the authority starts.
func Repair(dir, self string, now time.Time, dry bool) (*dbfile.Report, error) {
	path, kind := filepath.Join(dir, storeFile), fileKind()
	r := repair{certificates: map[string][]byte{}, names: map[string]string{}, tokens: map[string][]byte{}, now: now}
	damage, err := dbfile.Inspect(path, kind, r.take)
	if err != nil || damage == nil {
		return nil, err
	}
	for i := range damage.Damages {
		if d := &damage.Damages[i]; d.Bucket == string(issuedBucket) && !d.Some && r.names[string(d.From)] == "" {
			r.names[string(d.From)] = ""
		}
	}
	for serial, name := range r.names {
		if name == self && r.certificates[serial] == nil {
			delete(r.names, serial)
		}
	}
	report := &dbfile.Report{Path: path, Damages: damage.Names()}
	for serial, name := range r.names {
		if r.certificates[serial] == nil {
			report.Actions = append(report.Actions, fmt.Sprintf("certificate %x of %s is revoked: if that node is still wanted, let it join again", serial, name))
		}
	}
	report.Actions = append(report.Actions, fmt.Sprintf("%d certificates and %d tokens are kept", len(r.certificates), len(r.tokens)))
	if !dry {
		report.Aside, err = dbfile.Replace(path, kind, now, r.write)
	}
	return report, err
}

// repair is what is whole in a damaged store.
type repair struct {
	certificates map[string][]byte // by serial number
	names        map[string]string // serial number -> name
	tokens       map[string][]byte
	number       []byte // of the newest list of revoked certificates
	now          time.Time
}

func (r *repair) take(bucket string, key, value []byte) {
	value = bytes.Clone(value)
	switch bucket {
	case string(issuedBucket):
		record := new(issued)
		if json.Unmarshal(value, record) == nil {
			r.certificates[string(key)], r.names[string(key)] = value, record.Name
		}
	case string(namesBucket):
		if name, serial, ok := bytes.Cut(key, []byte{0}); ok {
			r.names[string(serial)] = string(name)
		}
	case string(tokensBucket):
		r.tokens[string(key)] = value
	case string(numbersBucket):
		r.number = value
	}
}

func (r *repair) write(w *dbfile.Writer) error {
	for serial, name := range r.names {
		text := r.certificates[serial]
		if text == nil {
			at := r.now.UnixNano()
			var err error
			if text, err = json.Marshal(&issued{
				Name: name, Joined: at, Made: at, Expires: r.now.Add(Validity).UnixNano(), Revoked: at, Reason: "its record was damaged on disk",
			}); err != nil {
				return err
			}
		}
		w.Put(string(issuedBucket), []byte(serial), text)
		if name != "" {
			w.Put(string(namesBucket), append(append([]byte(name), 0), serial...), nil)
		}
	}
	for key, text := range r.tokens {
		w.Put(string(tokensBucket), []byte(key), text)
	}
	if r.number != nil {
		w.Put(string(numbersBucket), []byte("revocations"), r.number)
	}
	return nil
}
