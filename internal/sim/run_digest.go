package sim

// runDigest is a digest of a sequence of numbers. It is FNV-1a over words instead of
// bytes, and adds a shift that brings the high bits down.
type runDigest uint64

func newDigest() runDigest { return 14695981039346656037 }

func (d *runDigest) add(n uint64) {
	h := (uint64(*d) ^ n) * 1099511628211
	*d = runDigest(h ^ h>>29)
}
