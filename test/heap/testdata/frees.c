/* A library that frees what others have allocated. */
#include <stdlib.h>

void give(void *p);
void give(void *p) { free(p); }

/* An address among code, as some assembly keeps it. */
__asm__(".text\n.balign 8\n.quad free\n");
