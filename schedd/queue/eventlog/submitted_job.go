package eventlog

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// SubmittedJob is what was submitted, as it is kept.
type SubmittedJob struct {
	Key               string
	PartIndex         int // of the submission that had this key
	PartCount         int
	Owner             string
	UID               uint32
	GID               uint32
	Ad                string
	Count             int
	Columns           []jobad.TaskColumn
	Dependencies      []JobDependency // what it says of other jobs, as far as that was not met at submit
	DeferredAdmission bool            // nobody could say whether quotas allow it
	// that the keys of the images of its tasks are derived from; it is shown to nobody
	Secret []byte
	// of a flow: its plan, in the form of package plan, and the ads of its templates as
	// they were admitted
	Flow    []byte
	FlowAds []string
	Plan    *plan.Plan // Flow, for whom it was decoded already; nil: nobody has
}

func (s *SubmittedJob) append(b []byte) []byte {
	b = appendText(b, 1, s.Key)
	b = appendNumber(b, 2, uint64(s.PartIndex))
	b = appendNumber(b, 3, uint64(s.PartCount))
	b = appendText(b, 4, s.Owner)
	b = appendNumber(b, 5, uint64(s.UID))
	b = appendNumber(b, 6, uint64(s.GID))
	b = appendText(b, 7, s.Ad)
	b = appendNumber(b, 8, uint64(s.Count))
	for _, c := range s.Columns {
		b = appendMessage(b, 9, func(b []byte) []byte {
			b = appendText(b, 1, c.Name)
			for _, v := range c.Values {
				b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), v)
			}
			return b
		})
	}
	for _, w := range s.Dependencies {
		b = appendMessage(b, 10, func(b []byte) []byte { return w.append(b) })
	}
	b = appendText(b, 11, string(s.Secret))
	b = appendText(appendBool(b, 12, s.DeferredAdmission), 13, string(s.Flow))
	for _, ad := range s.FlowAds {
		b = protowire.AppendString(protowire.AppendTag(b, 14, protowire.BytesType), ad)
	}
	return b
}

func (s *SubmittedJob) decode(b []byte) error {
	return eachField(b, func(f encodedField) (err error) {
		switch f.number {
		case 1:
			s.Key = string(f.bytes)
		case 2:
			s.PartIndex = int(f.value)
		case 3:
			s.PartCount = int(f.value)
		case 4:
			s.Owner = string(f.bytes)
		case 5:
			s.UID = uint32(f.value)
		case 6:
			s.GID = uint32(f.value)
		case 7:
			s.Ad = string(f.bytes)
		case 8:
			s.Count = int(f.value)
		case 9:
			var c jobad.TaskColumn
			c, err = decodeColumn(f.bytes)
			s.Columns = append(s.Columns, c)
		case 10:
			var w JobDependency
			err = w.decode(f.bytes)
			s.Dependencies = append(s.Dependencies, w)
		case 11:
			s.Secret = append([]byte(nil), f.bytes...)
		case 12:
			s.DeferredAdmission = f.value != 0
		case 13:
			s.Flow = append([]byte(nil), f.bytes...)
		case 14:
			s.FlowAds = append(s.FlowAds, string(f.bytes))
		}
		return err
	})
}

func decodeColumn(b []byte) (c jobad.TaskColumn, err error) {
	err = eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			c.Name = string(f.bytes)
		case 2:
			c.Values = append(c.Values, string(f.bytes))
		}
		return nil
	})
	return c, err
}
