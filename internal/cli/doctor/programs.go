package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/enroll"
)

// examinePrograms looks for the programs that belong beside this one. A package for users
// alone, or go install of a single program, leaves some of them out.
func examinePrograms(dir string) checkResult {
	const check = "programs"
	missing := enroll.MissingPrograms(dir)
	if len(missing) == 0 {
		return checkResult{check, levelOK, roost.Version + ", in " + dir, ""}
	}
	return checkResult{check, levelWarning,
		fmt.Sprintf("%s has no %s: this machine cannot be a node of a pool", dir, strings.Join(missing, ", ")),
		"install the package roost-node, or see roost-install(1)"}
}

// programDirectory is where this program is, and where the others belong.
func programDirectory() string {
	self, err := os.Executable()
	if err != nil {
		return "."
	}
	return filepath.Dir(self)
}
