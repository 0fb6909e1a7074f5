package images

import (
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/image"
)

// builderName is the name of the hidden command that reads layers.
const builderName = "image-builder"

// BuilderCommand returns roost image-builder: the child in which image.Builder reads the
// layers of an image. Only roost image starts it.
func BuilderCommand() *frame.Command {
	return &frame.Command{
		Name: builderName, Group: frame.GroupMore, Summary: "read an image's layers, for roost image", Hidden: true,
		RawArgs: true, Run: func(c *frame.Invocation) error { return image.RunChild(c.Context, c.Stdin, c.Stdout) },
	}
}
