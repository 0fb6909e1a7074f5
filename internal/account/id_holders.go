package account

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// IDHolder is an owner of ids in one of the machine's own files.
type IDHolder struct {
	File, Name string
	IDs        IDRange
}

// IDHolders lists the owners of ids in a range by the files in a directory, /etc. These
// are users and groups (passwd(5), group(5)), and users with ids for containers
// (subuid(5), subgid(5)). A file that cannot be read counts as empty. Other directories,
// such as LDAP, are not searched.
func IDHolders(dir string, r IDRange) (holders []IDHolder) {
	for _, file := range []struct {
		name      string
		from      int // index of the field with the first id
		hasLength bool
	}{{"passwd", 2, false}, {"group", 2, false}, {"subuid", 1, true}, {"subgid", 1, true}} {
		path := filepath.Join(dir, file.name)
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Split(strings.TrimSpace(line), ":")
			if len(fields) <= file.from || file.hasLength && len(fields) <= file.from+1 {
				continue
			}
			first, err := strconv.ParseUint(fields[file.from], 10, 32)
			length := uint64(1)
			if err == nil && file.hasLength {
				length, err = strconv.ParseUint(fields[file.from+1], 10, 32)
			}
			if err != nil || length == 0 {
				continue
			}
			ids := IDRange{uint32(first), uint32(min(first+length-1, math.MaxUint32))}
			if ids.First <= r.Last && r.First <= ids.Last && r != (IDRange{}) {
				holders = append(holders, IDHolder{path, fields[0], ids})
			}
		}
	}
	return holders
}
