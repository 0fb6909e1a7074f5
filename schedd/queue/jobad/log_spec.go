package jobad

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// LogSpec is how much captured output of the tasks of a service is kept.
type LogSpec struct {
	Size   roost.Bytes // of a stream that is removed at once
	Files  int         // the most that stays, in units of Size
	Retain time.Duration
}

// Total returns the most that stays of a stream.
func (l LogSpec) Total() roost.Bytes { return l.Size * roost.Bytes(l.Files) }

// ReadLogs reads how much output of a service is kept; nil for a job that is none.
func ReadLogs(ad *classad.Ad) (*LogSpec, error) {
	r := adReader{ad: ad}
	if !r.has(roost.AttrService) {
		return nil, nil
	}
	l := r.logSpec()
	return &l, r.err
}

// logSpec reads what the ad says of the output of a service.
func (r *adReader) logSpec() LogSpec {
	l := LogSpec{Size: roost.DefaultLogSize, Files: roost.DefaultLogFiles, Retain: roost.DefaultLogRetention}
	if !r.has(roost.AttrLogs) {
		return l
	}
	ad, ok := r.ad.Sub(roost.AttrLogs)
	if !ok {
		r.fail(roost.AttrLogs, "an ad is wanted")
		return l
	}
	in := adReader{ad: ad}
	l.Size = roost.Bytes(in.number(roost.AttrLogSize, int64(l.Size), int64(roost.MinLogSize), int64(roost.MaxLogSize)))
	l.Files = int(in.number(roost.AttrLogFiles, int64(l.Files), roost.MinLogFiles, roost.MaxLogFiles))
	l.Retain = in.duration(roost.AttrLogRetain, l.Retain, 0, roost.MaxLogRetention)
	if in.err != nil {
		r.fail(roost.AttrLogs, in.err.Error())
	}
	return l
}
