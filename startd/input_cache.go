package startd

import (
	"fmt"

	"github.com/roost-batch/roost/startd/inputcache"
)

// openInputCache opens the input files that an earlier process had, unless the settings
// say that there is no cache.
func (m *startdHost) openInputCache() (err error) {
	if m.config.InputCache.None {
		return nil
	}
	m.inputs, err = inputcache.Open(inputcache.Options{
		Log: m.log, Dir: m.dirs().InputCache(), MaxBytes: int64(m.config.InputCache.Max),
	})
	if err != nil {
		return fmt.Errorf("startd %s: %w", m.config.Name, err)
	}
	return nil
}
