package sim

// runDigest is a digest of numbers in their order, FNV-1a by words of eight bytes in
// place of bytes, with what it lacks then: high bits that come down.
type runDigest uint64

func newDigest() runDigest { return 14695981039346656037 }

func (d *runDigest) add(n uint64) {
	h := (uint64(*d) ^ n) * 1099511628211
	*d = runDigest(h ^ h>>29)
}
