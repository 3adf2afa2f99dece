#include "textflag.h"

// The loops of moments.go, histogram.go and single.go for processors with AVX2 and FMA: 16 elements at a time.

// func widenAVX2(dst *float64, src *byte, n int)
TEXT ·widenAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

widen:
	VCVTPS2PD (SI), Y0
	VCVTPS2PD 16(SI), Y1
	VCVTPS2PD 32(SI), Y2
	VCVTPS2PD 48(SI), Y3
	VMOVUPD   Y0, (DI)
	VMOVUPD   Y1, 32(DI)
	VMOVUPD   Y2, 64(DI)
	VMOVUPD   Y3, 96(DI)
	ADDQ      $64, SI
	ADDQ      $128, DI
	SUBQ      $16, CX
	JNZ       widen
	VZEROUPPER
	RET

// func passAVX2(xs *float64, n int, out *lanes)
TEXT ·passAVX2(SB), NOSPLIT, $0-24
	MOVQ    xs+0(FP), SI
	MOVQ    n+8(FP), CX
	MOVQ    out+16(FP), DI
	VXORPD  Y0, Y0, Y0
	VXORPD  Y1, Y1, Y1
	VXORPD  Y2, Y2, Y2
	VXORPD  Y3, Y3, Y3
	VMOVUPD (SI), Y4       // least
	VMOVAPD Y4, Y5         // greatest
	VXORPD  Y6, Y6, Y6     // negative
	VXORPD  Y7, Y7, Y7     // zero
	VXORPD  Y15, Y15, Y15

pass:
	VMOVUPD (SI), Y8
	VMOVUPD 32(SI), Y9
	VMOVUPD 64(SI), Y10
	VMOVUPD 96(SI), Y11
	VADDPD  Y8, Y0, Y0
	VADDPD  Y9, Y1, Y1
	VADDPD  Y10, Y2, Y2
	VADDPD  Y11, Y3, Y3
	VMINPD  Y8, Y9, Y12
	VMINPD  Y10, Y11, Y13
	VMINPD  Y12, Y13, Y12
	VMINPD  Y12, Y4, Y4
	VMAXPD  Y8, Y9, Y12
	VMAXPD  Y10, Y11, Y13
	VMAXPD  Y12, Y13, Y12
	VMAXPD  Y12, Y5, Y5
	VCMPPD  $1, Y15, Y8, Y12
	VCMPPD  $1, Y15, Y9, Y13
	VPSUBQ  Y12, Y6, Y6
	VPSUBQ  Y13, Y6, Y6
	VCMPPD  $1, Y15, Y10, Y12
	VCMPPD  $1, Y15, Y11, Y13
	VPSUBQ  Y12, Y6, Y6
	VPSUBQ  Y13, Y6, Y6
	VCMPPD  $0, Y15, Y8, Y12
	VCMPPD  $0, Y15, Y9, Y13
	VPSUBQ  Y12, Y7, Y7
	VPSUBQ  Y13, Y7, Y7
	VCMPPD  $0, Y15, Y10, Y12
	VCMPPD  $0, Y15, Y11, Y13
	VPSUBQ  Y12, Y7, Y7
	VPSUBQ  Y13, Y7, Y7
	ADDQ    $128, SI
	SUBQ    $16, CX
	JNZ     pass
	VADDPD  Y1, Y0, Y0
	VADDPD  Y3, Y2, Y2
	VADDPD  Y2, Y0, Y0
	VMOVUPD Y0, (DI)
	VMOVUPD Y4, 32(DI)
	VMOVUPD Y5, 64(DI)
	VMOVUPD Y6, 96(DI)
	VMOVUPD Y7, 128(DI)
	VZEROUPPER
	RET

// func squaresAVX2(xs *float64, n int, mean float64, out *[4]float64)
TEXT ·squaresAVX2(SB), NOSPLIT, $0-32
	MOVQ         xs+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSD mean+16(FP), Y15
	MOVQ         out+24(FP), DI
	VXORPD       Y0, Y0, Y0
	VXORPD       Y1, Y1, Y1
	VXORPD       Y2, Y2, Y2
	VXORPD       Y3, Y3, Y3

squares:
	VMOVUPD (SI), Y8
	VMOVUPD 32(SI), Y9
	VMOVUPD 64(SI), Y10
	VMOVUPD 96(SI), Y11
	VSUBPD  Y15, Y8, Y8
	VSUBPD  Y15, Y9, Y9
	VSUBPD  Y15, Y10, Y10
	VSUBPD  Y15, Y11, Y11
	VMULPD  Y8, Y8, Y8
	VMULPD  Y9, Y9, Y9
	VMULPD  Y10, Y10, Y10
	VMULPD  Y11, Y11, Y11
	VADDPD  Y8, Y0, Y0
	VADDPD  Y9, Y1, Y1
	VADDPD  Y10, Y2, Y2
	VADDPD  Y11, Y3, Y3
	ADDQ    $128, SI
	SUBQ    $16, CX
	JNZ     squares
	VADDPD  Y1, Y0, Y0
	VADDPD  Y3, Y2, Y2
	VADDPD  Y2, Y0, Y0
	VMOVUPD Y0, (DI)
	VZEROUPPER
	RET

// func indexAVX2(xs *float64, n int, p *placing, index *int32)
TEXT ·indexAVX2(SB), NOSPLIT, $0-32
	MOVQ         xs+0(FP), SI
	MOVQ         n+8(FP), CX
	MOVQ         p+16(FP), AX
	MOVQ         index+24(FP), DI
	VBROADCASTSD 0(AX), Y15  // low
	VBROADCASTSD 8(AX), Y14  // scale
	VBROADCASTSD 16(AX), Y13 // bins
	VBROADCASTSD 24(AX), Y12 // 0.5
	VBROADCASTSD 32(AX), Y11 // 0.5 less what may be wrong
	VBROADCASTSD 40(AX), Y10 // all bits but the sign
	VXORPD       Y9, Y9, Y9  // 0

index:
	VMOVUPD     (SI), Y0
	VMOVUPD     32(SI), Y1
	VSUBPD      Y15, Y0, Y0
	VSUBPD      Y15, Y1, Y1
	VMULPD      Y14, Y0, Y0
	VMULPD      Y14, Y1, Y1
	VROUNDPD    $3, Y0, Y2
	VROUNDPD    $3, Y1, Y3
	VSUBPD      Y2, Y0, Y2
	VSUBPD      Y3, Y1, Y3
	VSUBPD      Y12, Y2, Y2
	VSUBPD      Y12, Y3, Y3
	VANDPD      Y10, Y2, Y2
	VANDPD      Y10, Y3, Y3
	VCMPPD      $14, Y11, Y2, Y2 // next to an edge
	VCMPPD      $14, Y11, Y3, Y3
	VCMPPD      $1, Y9, Y0, Y4   // below
	VCMPPD      $1, Y9, Y1, Y5
	VORPD       Y4, Y2, Y2
	VORPD       Y5, Y3, Y3
	VCMPPD      $13, Y13, Y0, Y4 // at the end, or above
	VCMPPD      $13, Y13, Y1, Y5
	VORPD       Y4, Y2, Y2
	VORPD       Y5, Y3, Y3
	VORPD       Y2, Y0, Y0       // NaN, which has no integer: the lowest stands for it
	VORPD       Y3, Y1, Y1
	VCVTTPD2DQY Y0, X2
	VCVTTPD2DQY Y1, X3
	VMOVUPD     X2, (DI)
	VMOVUPD     X3, 16(DI)
	ADDQ        $64, SI
	ADDQ        $32, DI
	SUBQ        $8, CX
	JNZ         index
	VZEROUPPER
	RET

// func passSingleAVX2(src *byte, n int, shift float64, out *singleLanes)
TEXT ·passSingleAVX2(SB), NOSPLIT, $0-32
	MOVQ         src+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSD shift+16(FP), Y14
	MOVQ         out+24(FP), DI
	VXORPD       Y0, Y0, Y0    // sums
	VXORPD       Y1, Y1, Y1
	VXORPD       Y2, Y2, Y2    // squares
	VXORPD       Y3, Y3, Y3
	VMOVUPS      (SI), Y4      // least
	VMOVAPS      Y4, Y5        // greatest
	VXORPS       Y6, Y6, Y6    // negative
	VXORPS       Y7, Y7, Y7    // zero
	VXORPS       Y15, Y15, Y15

single:
	PREFETCHT0  4096(SI)
	VCVTPS2PD   (SI), Y10
	VCVTPS2PD   16(SI), Y11
	VCVTPS2PD   32(SI), Y12
	VCVTPS2PD   48(SI), Y13
	VMOVUPS     (SI), Y8
	VMOVUPS     32(SI), Y9
	VSUBPD      Y14, Y10, Y10
	VSUBPD      Y14, Y11, Y11
	VSUBPD      Y14, Y12, Y12
	VSUBPD      Y14, Y13, Y13
	VADDPD      Y10, Y0, Y0
	VADDPD      Y11, Y1, Y1
	VADDPD      Y12, Y0, Y0
	VADDPD      Y13, Y1, Y1
	VFMADD231PD Y10, Y10, Y2
	VFMADD231PD Y11, Y11, Y3
	VFMADD231PD Y12, Y12, Y2
	VFMADD231PD Y13, Y13, Y3
	VMINPS      Y8, Y9, Y10
	VMINPS      Y10, Y4, Y4
	VMAXPS      Y8, Y9, Y11
	VMAXPS      Y11, Y5, Y5
	VCMPPS      $1, Y15, Y8, Y10
	VCMPPS      $1, Y15, Y9, Y11
	VPSUBD      Y10, Y6, Y6
	VPSUBD      Y11, Y6, Y6
	VCMPPS      $0, Y15, Y8, Y10
	VCMPPS      $0, Y15, Y9, Y11
	VPSUBD      Y10, Y7, Y7
	VPSUBD      Y11, Y7, Y7
	ADDQ        $64, SI
	SUBQ        $16, CX
	JNZ         single
	VADDPD      Y1, Y0, Y0
	VADDPD      Y3, Y2, Y2
	VMOVUPD     Y0, (DI)
	VMOVUPD     Y2, 32(DI)
	VMOVUPS     Y4, 64(DI)
	VMOVUPS     Y5, 96(DI)
	VMOVUPS     Y6, 128(DI)
	VMOVUPS     Y7, 160(DI)
	VZEROUPPER
	RET

// func pairsSingleAVX2(src *byte, n int, p *placingSingle, pairs *uint64, sure *uint16)
TEXT ·pairsSingleAVX2(SB), NOSPLIT, $0-40
	MOVQ         src+0(FP), SI
	MOVQ         n+8(FP), CX
	MOVQ         p+16(FP), AX
	MOVQ         pairs+24(FP), DI
	MOVQ         sure+32(FP), DX
	VBROADCASTSS 0(AX), Y15  // scale
	VBROADCASTSS 4(AX), Y14  // of the lowest place that rounding may hide
	VBROADCASTSS 8(AX), Y13  // of the highest
	VBROADCASTSS 12(AX), Y12 // the first edge
	VPBROADCASTD 16(AX), Y11 // the last bin
	VPCMPEQD     Y10, Y10, Y10 // -1

pairs:
	VMOVUPS     (SI), Y0
	VMOVUPS     32(SI), Y1
	VMOVAPS     Y14, Y2
	VMOVAPS     Y14, Y3
	VMOVAPS     Y13, Y4
	VMOVAPS     Y13, Y5
	VFMADD231PS Y15, Y0, Y2
	VFMADD231PS Y15, Y1, Y3
	VFMADD231PS Y15, Y0, Y4
	VFMADD231PS Y15, Y1, Y5
	VCVTTPS2DQ  Y2, Y2
	VCVTTPS2DQ  Y3, Y3
	VCVTTPS2DQ  Y4, Y4
	VCVTTPS2DQ  Y5, Y5
	VPCMPEQD    Y2, Y4, Y4
	VPCMPEQD    Y3, Y5, Y5
	VPADDD      Y10, Y2, Y2
	VPADDD      Y10, Y3, Y3
	VPMINUD     Y11, Y2, Y6
	VPMINUD     Y11, Y3, Y7
	VPCMPEQD    Y6, Y2, Y2
	VPCMPEQD    Y7, Y3, Y3
	VPAND       Y4, Y2, Y2
	VPAND       Y5, Y3, Y3
	VCMPPS      $0, Y12, Y0, Y0
	VCMPPS      $0, Y12, Y1, Y1
	VPOR        Y0, Y2, Y2
	VPOR        Y1, Y3, Y3
	VPANDN      Y6, Y0, Y6
	VPANDN      Y7, Y1, Y7
	VPSRLQ      $26, Y6, Y4
	VPSRLQ      $26, Y7, Y5
	VPOR        Y4, Y6, Y6
	VPOR        Y5, Y7, Y7
	VMOVDQU     Y6, (DI)
	VMOVDQU     Y7, 32(DI)
	VMOVMSKPS   Y2, AX
	VMOVMSKPS   Y3, BX
	SHLL        $8, BX
	ORL         BX, AX
	MOVW        AX, (DX)
	ADDQ        $64, SI
	ADDQ        $64, DI
	ADDQ        $2, DX
	SUBQ        $16, CX
	JNZ         pairs
	VZEROUPPER
	RET
