package sim

// digest is a digest of numbers in their order, FNV-1a by words of eight bytes in place of bytes, with what it lacks then: high bits that come down.
type digest uint64

func newDigest() digest { return 14695981039346656037 }

func (d *digest) add(n uint64) {
	h := (uint64(*d) ^ n) * 1099511628211
	*d = digest(h ^ h>>29)
}
