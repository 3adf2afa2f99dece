/* A library that frees what others have allocated. */
#include <stdlib.h>

void give(void *p);
void give(void *p) { free(p); }
