package adtext

import "slices"

// Packer packs texts as differences from earlier ones. It is not safe for concurrent use;
// what it packs may be read by anybody.
type Packer struct {
	bases   map[uint32][]*baseText // by user, the last used first
	scratch []byte
}

// Bounds of a packer. At maxUsers it starts again empty, and what is packed shares what
// it shares.
const (
	maxUsers        = 1 << 12
	basesPerUser    = 4
	minPackedBytes  = 64 // shorter texts are stored as they are
	maxEditsPercent = 40 // of a text; one that differs more becomes a base itself
	goodPercent     = 10 // a base with so few edits is not compared with others
)

// NewPacker returns a packer that knows no text.
func NewPacker() *Packer { return &Packer{bases: map[uint32][]*baseText{}} }

// Pack packs the text of a job of a user. What the user submitted earlier is most like
// it. The first text of a kind is stored as it is, and the later ones as its differences.
func (p *Packer) Pack(uid uint32, text string) Packed {
	if len(text) < minPackedBytes {
		return Plain(text)
	}
	bases := p.bases[uid]
	var best Packed
	bestSize, used := len(text)*maxEditsPercent/100, -1
	for i, b := range bases {
		p.scratch = b.appendEdits(p.scratch[:0], text)
		if len(p.scratch) > bestSize {
			continue
		}
		best, bestSize, used = Packed{b, string(p.scratch)}, len(p.scratch), i
		if bestSize <= len(text)*goodPercent/100 {
			break
		}
	}
	if used < 0 {
		return p.addBase(uid, text)
	}
	if b := bases[used]; used > 0 {
		copy(bases[1:used+1], bases[:used])
		bases[0] = b
	}
	return best
}

// addBase makes a text a base. The base that was used longest ago is compared no more.
func (p *Packer) addBase(uid uint32, text string) Packed {
	if _, known := p.bases[uid]; !known && len(p.bases) >= maxUsers {
		p.bases = map[uint32][]*baseText{}
	}
	b := &baseText{text: text}
	bases := slices.Insert(p.bases[uid], 0, b)
	if len(bases) > basesPerUser {
		bases[basesPerUser].index = nil
		bases[basesPerUser] = nil
		bases = bases[:basesPerUser]
	}
	p.bases[uid] = bases
	return Plain(text)
}
