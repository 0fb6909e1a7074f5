package config

import "github.com/roost-batch/roost"

// InputCacheSettings are the settings of a startd for input files that several attempts
// of a user need.
type InputCacheSettings struct {
	Max  roost.Bytes // the most bytes of all files; 0: a tenth of the file system
	None bool        // files come with each attempt
}

func (s *blockReader) readInputCache(to *InputCacheSettings) {
	b := s.singleBlock("input_cache")
	if b == nil {
		return
	}
	c := s.innerBlock(b)
	c.readSize("max_size", `"50GiB"`, &to.Max)
	c.readBool("none", &to.None)
	c.reportUnknown()
}

func (w fileWriter) writeInputCache(c InputCacheSettings) {
	if c == (InputCacheSettings{}) {
		return
	}
	b := w.writeBlock("input_cache")
	b.writeSize("max_size", c.Max)
	b.writeBool("none", c.None)
}
