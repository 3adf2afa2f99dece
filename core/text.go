package core

import (
	"fmt"
	"slices"
	"strconv"
)

// enumText is the text of value i of an enumeration whose texts are given in order of value.
func enumText(kind string, texts []string, i int) string {
	if i >= 0 && i < len(texts) && texts[i] != "" {
		return texts[i]
	}
	return kind + "(" + strconv.Itoa(i) + ")"
}

// marshalEnum refuses what unmarshalEnum could not read again.
func marshalEnum(kind string, texts []string, i int) ([]byte, error) {
	if i < 0 || i >= len(texts) || texts[i] == "" {
		return nil, fmt.Errorf("unknown %s %d", kind, i)
	}
	return []byte(texts[i]), nil
}

func unmarshalEnum(kind string, texts []string, text []byte) (int, error) {
	if i := slices.Index(texts, string(text)); i >= 0 && len(text) > 0 {
		return i, nil
	}
	return 0, fmt.Errorf("unknown %s %q", kind, text)
}
