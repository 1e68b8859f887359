/* SPDX-License-Identifier: Apache-2.0
 * The cpu device against the reference, beyond the rows' own examples: sizes around the borders of
 * tiles and vectors, broadcasting of every kind, shapes that oneDNN treats differently, 16-bit
 * storage. Arguments name operators to check only those. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/trial.h"
#include "dev/cpu/conv_own.h"
#include "dev/dev.h"

#define MAX_CASES 48

static const struct group {
    const char *op;
    const char *cases[MAX_CASES + 1];
} groups[] = {
    {"add",
     {"f32[1], f32[1]",
      "f32[7], f32[7]",
      "f32[1023], f32[1023]",
      "f32[1025], f32[1025]",
      "f32[3,1025], f32[1025]",
      "f32[1025,3], f32[1025,1]",
      "f32[2,3,1100], f32[3,1]",
      "f32[2050], f32[]",
      "f32[], f32[2050]",
      "f32[5,257], f32[1,257]",
      "f32[5,255], f32[255]",
      "f32[4,1,6,1], f32[5,1,7]",
      "f32[2,1,300], f32[1,4,1]",
      "f32[2,64,7,7], f32[64,1,1]",
      "f32[2,3,33,33], f32[3,1,1]",
      "bf16[1025], bf16[1025]",
      "bf16[3,400], bf16[400]",
      "f16[1025], f16[]",
      "bf16[2,3,5], bf16[3,1]",
      "i32[1025]@-9:9, i32[]@-9:9",
      "i64[3,400]@-9:9, i64[400]@-9:9",
      "u8[2050]@0:255, u8[2050]@0:255"}},
    {"sub", {"f32[700,3], f32[3]", "f16[5,7], f16[5,1]", "u8[40]@0:9, u8[40]@0:9"}},
    {"mul", {"i32[2049]@-1e9:1e9, i32[2049]@-9:9", "bf16[6,1,9], bf16[7,1]"}},
    {"div", {"f32[1025], f32[1025]@0.5:2", "f16[9,9], f16[9]@0.5:2"}},
    {"pow", {"f32[1025]@0:9, f32[1025]@-3:3", "f32[300], f32[]@2:2"}},
    {"maximum", {"f32[1025], f32[]", "i64[77]@-5:5, i64[77]@-5:5", "u8[9]@0:9, u8[9]@0:9"}},
    {"minimum", {"f16[1025], f16[1025]", "i32[77]@-5:5, i32[77]@-5:5"}},
    {"less", {"f32[1025], f32[]", "i64[3,700]@-5:5, i64[700]@-5:5", "bf16[9], bf16[9]"}},
    {"greater_equal", {"i32[2,1025]@-2:2, i32[2,1]@-2:2", "u8[1030]@0:3, u8[]@1:3"}},
    {"equal", {"i64[1300]@-2:2, i64[1300]@-2:2", "f16[40]@0:0.01, f16[40]@0:0.01"}},
    {"where",
     {"bool[1025], f32[1025], f32[]", "bool[3,1], f32[1025], f32[3,1025]",
      "bool[2,1,5], bf16[3,1], bf16[5]", "bool[1030], u8[1030]@0:9, u8[]@0:9",
      "bool[1030], bool[1030], bool[]"}},
    {"and", {"bool[1025], bool[]"}},
    {"or", {"bool[3,400], bool[400]"}},
    {"not", {"bool[1025]"}},
    {"neg", {"f32[1025]", "f16[2049]", "u8[40]@0:9", "i32[1030]@-9:9", "f32[2,3,4,5,6]"}},
    {"abs", {"f16[1025]", "i64[30]@-9:9"}},
    {"sign", {"u8[40]@0:2", "i32[40]@-2:2", "f16[99]"}},
    {"exp", {"f32[1025]@-90:80", "bf16[1025]@-5:5", "f16[33]@-5:5"}},
    {"log", {"f32[1025]@1e-30:1e30", "bf16[40]@0.1:9"}},
    {"sqrt", {"f32[1025]@0:1e9"}},
    {"rsqrt", {"f32[1025]@1e-6:1e3"}},
    {"erf", {"f32[1025]@-5:5"}},
    {"tanh", {"f32[1025]@-12:12"}},
    {"sigmoid", {"f32[1025]@-90:90", "bf16[40]@-9:9"}},
    {"gelu", {"f32[1025]@-9:9", "bf16[1300]@-4:4"}},
    {"gelu_tanh", {"f32[1025]@-9:9"}},
    {"silu", {"f32[1025]@-30:30"}},
    {"softplus", {"f32[1025]@-50:50"}},
    {"clip", {"f32[1025]@-3:3 {low=-1, high=0.5}"}},
    {"cast",
     {"f32[1025]@-300:300 {to=u8}", "f32[1025]@-1e10:1e10 {to=i32}", "f32[40]@-1e20:1e20 {to=i64}",
      "bf16[1025]@-9:9 {to=i64}", "f16[1025] {to=bf16}", "f32[1025] {to=f16}",
      "f32[40]@-1e-7:1e-7 {to=f16}", "i64[1025]@-9e9:9e9 {to=i32}", "i64[40]@-900:900 {to=u8}",
      "i32[40]@-9:9 {to=u8}", "u8[1025]@0:255 {to=f16}", "bool[1025] {to=i64}",
      "bf16[40]@-1:1 {to=bool}", "i64[40]@-2:2 {to=bool}", "f32[1030]@-9:9 {to=f32}"}},
    {"fill_like", {"bf16[1025] {value=1.5}", "bool[9] {value=1}", "u8[300]@0:9 {value=7}"}},
    {"expand",
     {"f32[3,1] {shape=[3,1025]}", "bf16[1,300] {shape=[7,300]}", "bool[1] {shape=[40]}",
      "i64[2,1,3]@-9:9 {shape=[4,2,5,3]}"}},
    {"spread",
     {"f32[64], f32[2,64,7,7] {axes=[0,2,3], count=98}", "bf16[2,3], bf16[2,500,3] {axes=[1]}",
      "i32[3]@-9:9, i32[3,40]@0:1 {axes=[1]}", "f32[1,1], f32[40,50] {axes=[0,1], count=3}"}},
    {"reshape", {"f16[3,400] {shape=[1200]}"}},
    {"transpose",
     {"f32[37,65] {order=[1,0]}", "f32[2,17,5,9] {order=[0,2,3,1]}", "bf16[33,40] {order=[1,0]}",
      "u8[50,35]@0:255 {order=[1,0]}", "i64[5,6,7]@-9:9 {order=[2,1,0]}",
      "f32[2,12,9,16] {order=[0,2,1,3]}", "f32[2,3,4,5,6] {order=[4,2,0,3,1]}"}},
    {"slice",
     {"f32[5,9,7] {axis=1, begin=2, end=8}", "bf16[1025] {axis=0, begin=1, end=1024}",
      "u8[4,3,9]@0:9 {axis=0, begin=1, end=3}", "f32[6,1,5] {axis=-1, begin=4, end=5}"}},
    {"concat",
     {"f32[2,3,5], f32[2,1,5], f32[2,9,5] {axis=1}", "bf16[3,7], bf16[3,40] {axis=-1}",
      "i64[1,5]@-9:9, i64[2,5]@-9:9 {axis=0}", "bool[3], bool[4], bool[5], bool[1] {axis=0}"}},
    {"split", {"f32[5,12,3] {axis=1, n=4}", "f16[9,8] {axis=1, n=8}", "u8[6]@0:9 {axis=0, n=3}"}},
    {"pad",
     {"f32[3,40,7] {before=[0,3,1], after=[2,0,5], value=0.5}",
      "bf16[1025] {before=[1], after=[2]}", "u8[2,2]@0:9 {before=[1,0], after=[0,1], value=3}"}},
    {"gather",
     {"f32[50,65], i64[7,3]@0:50", "f32[9,300], i64[99]@0:9", "bf16[9,5,3], i32[40]@0:9",
      "i64[9]@-9:9, i64[5]@0:9"}},
    {"gather_grad",
     {"f32[200,33], i64[200]@0:9, f32[9,33]", "bf16[40,5], i32[40]@0:7, bf16[7,5]",
      "f32[50,100], i64[50]@0:900, f32[999,100]", "f16[300,200], i32[300]@0:500, f16[500,200]"}},
    {"one_hot", {"i64[37]@-3:40 {depth=33}", "i32[4,5]@0:9 {depth=9}", "i32[300]@0:99 {depth=99}"}},
    {"sum",
     {"f32[1025]",
      "f32[7,1025] {axes=[1]}",
      "f32[1025,7] {axes=[0]}",
      "f32[15] {axes=[0]}",
      "f32[33,17,9] {axes=[0,2]}",
      "f32[9,3,700] {axes=[0]}",
      "f32[3,600,5] {axes=[0,1], keep=1}",
      "f32[2,3,4,5,6] {axes=[0,2,4]}",
      "f32[2,3,4,5,6] {axes=[1,3]}",
      "bf16[40,50] {axes=[0]}",
      "f16[300]",
      "i32[40,50]@-9:9 {axes=[0]}",
      "i64[40,50]@-9:9 {axes=[1]}",
      "u8[7,9]@0:9 {axes=[1]}",
      "f32[1,5,1] {axes=[0,2]}",
      "i32[700]@-9:9",
      "f32[100000]",
      "f32[700,300] {axes=[0]}",
      "bf16[2000,70] {axes=[0]}",
      "f32[3,5000] {axes=[1]}",
      "f32[20,3,5000] {axes=[0,2]}",
      "i64[90000]@-9:9"}},
    {"mean",
     {"f32[70000]", "f32[4,64,49] {axes=[2]}", "f32[64,33] {axes=[0]}", "bf16[3,1030] {axes=[1]}"}},
    {"max",
     {"f32[7,1025]@-9:9 {axes=[1]}", "f32[1025,7]@-9:9 {axes=[0]}", "f32[16]@-9:-1",
      "f16[9,9]@-9:9 {axes=[0]}", "i64[9,40]@-90:90 {axes=[1]}", "u8[40,9]@0:255 {axes=[0]}",
      "bf16[70000]@-9:9", "f32[300,100] {axes=[0]}"}},
    {"argmax",
     {"f32[7,1025] {axis=1}", "f32[33,300] {axis=0}", "f32[3,9,40]@0:0.001 {axis=1}",
      "bf16[5,70] {axis=1}", "f16[70,5] {axis=0}", "bf16[9,3,300]@0:0.1 {axis=1}",
      "u8[5,70]@0:5 {axis=1}", "i32[70,5]@-5:5 {axis=0}"}},
    {"top_k",
     {"f32[9,300] {k=5}", "f16[200,70] {k=5}", "bf16[3,100] {k=100}", "i64[5,70]@-5:5 {k=20}",
      "u8[70]@0:5 {k=9}"}},
    {"sum_squares", {"f32[1025], f32[3,5], f32[]", "bf16[300], f32[17]", "f32[50000], f16[30000]"}},
    {"all_finite", {"f32[1025], bf16[7]", "f16[300], f32[2]", "f32[50000], bf16[30000]"}},
    {"matmul",
     {"f32[1,1], f32[1,1]", "f32[16,1], f32[1,2]", "f32[16,16], f32[16,16]",
      /* of few samples */
      "f32[16,400], f32[123,400] {trans_b=1}", "f32[16,123], f32[123,400]",
      "f32[16,123], f32[16,400] {trans_a=1}", "f32[1,500], f32[70,500] {trans_b=1}",
      "f32[300,17], f32[70,300] {trans_a=1, trans_b=1}", "f32[32,401], f32[401,1]",
      "f32[17,33], f32[33,65]", "f32[128,200], f32[200,96]", "f32[65,130], f32[96,130] {trans_b=1}",
      "f32[130,65], f32[130,96] {trans_a=1}", "f32[130,65], f32[96,130] {trans_a=1, trans_b=1}",
      "f32[6,33,40], f32[6,40,20]", "f32[2,3,33,40], f32[2,3,20,40] {trans_b=1}",
      "f32[2,3,33,40], f32[40,20]", "f32[4,33,40], f32[1,40,20]", "f32[2,1,33,40], f32[3,40,20]",
      "f32[40,33], f32[5,40,20] {trans_a=1}", "f32[5,40,33], f32[40,20] {trans_a=1}",
      "f32[3,4,2,5], f32[3,4,5,3]", "f32[1,700], f32[700,1]", "f32[700,1], f32[1,300]",
      "bf16[33,65], bf16[65,40]", "bf16[4,33,64], bf16[4,40,64] {trans_b=1}",
      "f32[2,2,1,16,32], f32[2,1,3,32,16]", "bf16[2,3], bf16[3,2]",
      /* cut into parts */
      "f32[300,200], f32[200,700]", "f32[200,300], f32[200,700] {trans_a=1}",
      "f32[300,200], f32[700,200] {trans_b=1}", "f32[100,300], f32[300,700]",
      "f32[100,300], f32[700,300] {trans_b=1}", "f32[5,70,200], f32[5,200,300]",
      "bf16[300,200], bf16[200,700]", "bf16[100,300], bf16[700,300] {trans_b=1}"}},
    {"conv2d",
     {"f32[2,3,32,32], f32[16,3,7,7] {stride=[2,2], pad=[3,3]}",
      "f32[1,64,14,14], f32[64,64,3,3] {pad=[1,1]}", "f32[2,64,8,8], f32[32,64,1,1], f32[32]",
      "f32[1,32,14,14], f32[64,32,1,1] {stride=[2,2]}",
      "f32[2,32,9,9], f32[32,1,3,3] {pad=[1,1], groups=32}",
      "f32[2,24,9,9], f32[24,1,5,5], f32[24] {stride=[2,2], pad=[2,2], groups=24}",
      "f32[1,32,7,7], f32[32,8,3,3] {pad=[1,1], groups=4}",
      "f32[2,5,11,13], f32[7,5,3,2], f32[7] {stride=[2,1], pad=[1,0], dilation=[2,3]}",
      "f32[2,1,28,28], f32[6,1,5,5], f32[6] {pad=[2,2]}", "f32[2,17,6,6], f32[33,17,3,3]",
      "f32[3,15,9,20], f32[16,15,3,3], f32[16] {pad=[2,1]}",
      "f32[5,3,7,40], f32[11,3,2,4] {pad=[1,3], dilation=[2,1]}",
      "f32[2,6,14,14], f32[16,6,5,5], f32[16]",
      /* Winograd's transform: conv_wino.c; with a bias it is the library's */
      "f32[3,48,9,7], f32[80,48,3,3] {pad=[1,1], winograd=1}",
      "f32[2,16,14,8], f32[32,16,3,3] {winograd=1}",
      "f32[5,32,4,9], f32[16,32,3,3] {pad=[2,2], winograd=1}",
      "f32[3,32,40,40], f32[16,32,3,3] {pad=[1,1], winograd=1}",
      "f32[3,32,5,9], f32[48,32,3,3] {pad=[0,2], winograd=1}",
      "f32[3,16,9,2], f32[16,16,3,3] {pad=[2,1], winograd=1}",
      "f32[400,16,1,1], f32[464,16,3,3] {pad=[1,1], winograd=1}",
      "f32[2,32,8,8], f32[32,32,3,3], f32[32] {pad=[1,1], winograd=1}",
      /* samples fill vectors: conv_across.c */
      "f32[15,3,9,11], f32[11,3,3,4], f32[11] {pad=[1,3], dilation=[2,1]}",
      "f32[28,2,7,9], f32[16,2,5,3] {pad=[4,0]}", "f32[31,1,6,5], f32[3,1,3,8], f32[3] {pad=[0,7]}",
      "f32[48,15,3,3], f32[1,15,3,3] {pad=[2,2]}", "f32[16,6,14,14], f32[16,6,5,5], f32[16]",
      "bf16[1,32,9,9], bf16[32,32,3,3], bf16[32] {pad=[1,1]}",
      "bf16[2,3,16,16], bf16[16,3,3,3] {stride=[2,2], pad=[1,1]}"}},
    {"conv2d_dx",
     {"f32[2,16,16,16], f32[16,3,7,7], f32[2,3,32,32] {stride=[2,2], pad=[3,3]}",
      "f32[1,64,14,14], f32[64,64,3,3], f32[1,64,14,14] {pad=[1,1]}",
      "f32[1,64,7,7], f32[64,32,1,1], f32[1,32,14,14] {stride=[2,2]}",
      "f32[2,32,9,9], f32[32,1,3,3], f32[2,32,9,9] {pad=[1,1], groups=32}",
      "f32[2,24,5,5], f32[24,1,5,5], f32[2,24,9,9] {stride=[2,2], pad=[2,2], groups=24}",
      "f32[1,32,7,7], f32[32,8,3,3], f32[1,32,7,7] {pad=[1,1], groups=4}",
      "f32[2,7,5,10], f32[7,5,3,2], f32[2,5,11,13] {stride=[2,1], pad=[1,0], dilation=[2,3]}",
      "f32[2,33,4,4], f32[33,17,3,3], f32[2,17,6,6]",
      "f32[3,16,11,20], f32[16,15,3,3], f32[3,15,9,20] {pad=[2,1]}",
      "f32[5,11,7,43], f32[11,3,2,4], f32[5,3,7,40] {pad=[1,3], dilation=[2,1]}",
      "f32[2,16,10,10], f32[16,6,5,5], f32[2,6,14,14]",
      "f32[15,11,7,14], f32[11,3,3,4], f32[15,3,9,11] {pad=[1,3], dilation=[2,1]}",
      "f32[28,16,11,7], f32[16,2,5,3], f32[28,2,7,9] {pad=[4,0]}",
      "f32[31,3,4,12], f32[3,1,3,8], f32[31,1,6,5] {pad=[0,7]}",
      "f32[48,1,5,5], f32[1,15,3,3], f32[48,15,3,3] {pad=[2,2]}",
      "f32[16,16,10,10], f32[16,6,5,5], f32[16,6,14,14]",
      "bf16[1,32,9,9], bf16[32,32,3,3], bf16[1,32,9,9] {pad=[1,1]}",
      "f32[3,48,9,7], f32[48,80,3,3], f32[3,80,9,7] {pad=[1,1], winograd=1}",
      "f32[2,16,12,6], f32[16,32,3,3], f32[2,32,14,8] {winograd=1}",
      "f32[5,32,6,11], f32[32,16,3,3], f32[5,16,4,9] {pad=[2,2], winograd=1}",
      "f32[3,32,40,40], f32[32,16,3,3], f32[3,16,40,40] {pad=[1,1], winograd=1}",
      "f32[3,48,3,11], f32[48,32,3,3], f32[3,32,5,9] {pad=[0,2], winograd=1}",
      "f32[3,16,11,2], f32[16,16,3,3], f32[3,16,9,2] {pad=[2,1], winograd=1}"}},
    {"conv2d_dw",
     {"f32[2,16,16,16], f32[2,3,32,32], f32[16,3,7,7] {stride=[2,2], pad=[3,3]}",
      "f32[1,64,14,14], f32[1,64,14,14], f32[64,64,3,3] {pad=[1,1]}",
      "f32[1,64,7,7], f32[1,32,14,14], f32[64,32,1,1] {stride=[2,2]}",
      "f32[2,32,9,9], f32[2,32,9,9], f32[32,1,3,3] {pad=[1,1], groups=32}",
      "f32[2,24,5,5], f32[2,24,9,9], f32[24,1,5,5] {stride=[2,2], pad=[2,2], groups=24}",
      "f32[1,32,7,7], f32[1,32,7,7], f32[32,8,3,3] {pad=[1,1], groups=4}",
      "f32[2,7,5,10], f32[2,5,11,13], f32[7,5,3,2] {stride=[2,1], pad=[1,0], dilation=[2,3]}",
      "f32[2,33,4,4], f32[2,17,6,6], f32[33,17,3,3]",
      "f32[3,16,11,20], f32[3,15,9,20], f32[16,15,3,3] {pad=[2,1]}",
      "f32[5,11,7,43], f32[5,3,7,40], f32[11,3,2,4] {pad=[1,3], dilation=[2,1]}",
      "f32[9,16,10,10], f32[9,6,14,14], f32[16,6,5,5]",
      "f32[15,11,7,14], f32[15,3,9,11], f32[11,3,3,4] {pad=[1,3], dilation=[2,1]}",
      "f32[28,16,11,7], f32[28,2,7,9], f32[16,2,5,3] {pad=[4,0]}",
      "f32[31,3,4,12], f32[31,1,6,5], f32[3,1,3,8] {pad=[0,7]}",
      "f32[48,1,5,5], f32[48,15,3,3], f32[1,15,3,3] {pad=[2,2]}",
      "f32[16,16,10,10], f32[16,6,14,14], f32[16,6,5,5]",
      "bf16[1,32,9,9], bf16[1,32,9,9], bf16[32,32,3,3] {pad=[1,1]}",
      "f32[3,16,7,7], f32[3,48,14,14], f32[16,48,3,3] {stride=[2,2], pad=[1,1]}",
      "f32[5,32,20,22], f32[5,16,22,24], f32[32,16,3,3]",
      "f32[9,64,1,1], f32[9,112,1,1], f32[64,112,3,3] {pad=[1,1]}",
      "f32[2,16,5,30], f32[2,80,9,33], f32[16,80,3,2] {stride=[1,2], pad=[1,14], dilation=[3,1]}",
      "f32[40,96,6,5], f32[40,32,11,5], f32[96,32,1,1] {stride=[2,1]}",
      "f32[1,128,2,2], f32[1,64,2,2], f32[128,64,5,5] {pad=[2,2]}",
      "f32[9,16,30,30], f32[9,64,30,30], f32[16,64,3,3] {pad=[1,1]}",
      "f32[8,272,4,4], f32[8,128,4,4], f32[272,128,3,3] {pad=[1,1]}",
      "bf16[9,32,30,30], bf16[9,32,30,30], bf16[32,32,3,3] {pad=[1,1]}",
      "bf16[8,272,4,4], bf16[8,128,4,4], bf16[272,128,3,3] {pad=[1,1]}",
      "f32[3,80,9,7], f32[3,48,9,7], f32[80,48,3,3] {pad=[1,1], winograd=1}",
      "f32[2,32,12,6], f32[2,16,14,8], f32[32,16,3,3] {winograd=1}",
      "f32[5,16,6,11], f32[5,32,4,9], f32[16,32,3,3] {pad=[2,2], winograd=1}",
      "f32[3,32,40,40], f32[3,16,40,40], f32[32,16,3,3] {pad=[1,1], winograd=1}",
      "f32[7,144,4,4], f32[7,128,4,4], f32[144,128,3,3] {pad=[1,1], winograd=1}",
      "f32[3,48,3,11], f32[3,32,5,9], f32[48,32,3,3] {pad=[0,2], winograd=1}",
      "f32[3,16,11,2], f32[3,16,9,2], f32[16,16,3,3] {pad=[2,1], winograd=1}",
      /* without such a kernel: the direct one */
      "f32[2,32,9,9], f32[2,16,9,9], f32[32,16,1,1] {winograd=1}",
      "f32[1,128,2,2], f32[1,64,2,2], f32[128,64,5,5] {pad=[2,2], winograd=1}",
      "bf16[2,16,7,7], bf16[2,48,7,7], bf16[16,48,3,3] {pad=[1,1], winograd=1}",
      "bf16[6,256,7,7], bf16[6,1024,14,14], bf16[256,1024,1,1] {stride=[2,2]}",
      "bf16[3,16,7,7], bf16[3,48,14,14], bf16[16,48,3,3] {stride=[2,2], pad=[1,1]}",
      "bf16[5,32,20,22], bf16[5,16,22,24], bf16[32,16,3,3]",
      "bf16[9,64,1,1], bf16[9,112,1,1], bf16[64,112,3,3] {pad=[1,1]}",
      "bf16[40,96,6,5], bf16[40,32,11,5], bf16[96,32,1,1] {stride=[2,1]}"}},
    {"max_pool",
     {"f32[2,16,28,28] {size=[3,3], stride=[2,2], pad=[1,1]}",
      "f32[2,3,33,35] {size=[2,2], stride=[2,2]}",
      "f32[1,2,9,40] {size=[3,5], stride=[1,3], pad=[1,2]}",
      "f32[1,3,12,12]@0:0.001 {size=[3,3], stride=[2,2], pad=[1,1], ceil=1}",
      "f32[1,2,9,9] {size=[9,9], stride=[1,1]}", "f32[1,2,20,21] {size=[2,2], stride=[3,5]}",
      "f32[1,2,9,50] {size=[3,7], stride=[2,3], pad=[1,3], ceil=1}",
      "bf16[2,3,20,20]@0:0.1 {size=[3,3], stride=[2,2], pad=[1,1]}"}},
    {"max_pool_dx",
     {"f32[2,16,14,14], i32[2,16,14,14]@0:784, f32[2,16,28,28] {size=[3,3], stride=[2,2], "
      "pad=[1,1]}",
      "f32[40,3,1,1], i32[40,3,1,1]@0:4, f32[40,3,2,2] {size=[2,2], stride=[2,2]}",
      "f32[9,1,1,1], i32[9,1,1,1]@0:6, f32[9,1,3,2] {size=[3,2], stride=[3,2]}",
      "bf16[2,3,5,5], i32[2,3,5,5]@0:100, bf16[2,3,10,10] {size=[2,2], stride=[2,2]}"}},
    {"avg_pool",
     {"f32[2,16,28,28] {size=[3,3], stride=[2,2], pad=[1,1]}",
      "f32[2,64,7,7] {size=[7,7], stride=[1,1]}",
      "f32[1,2,13,40] {size=[3,5], stride=[1,3], pad=[1,2], exclude_pad=1}",
      "f32[1,3,12,12] {size=[3,3], stride=[2,2], pad=[1,1], ceil=1}",
      "bf16[2,3,20,20] {size=[2,2], stride=[2,2]}"}},
    {"avg_pool_dx",
     {"f32[2,16,14,14], f32[2,16,28,28] {size=[3,3], stride=[2,2], pad=[1,1]}",
      "f32[2,64,1,1], f32[2,64,7,7] {size=[7,7], stride=[1,1]}",
      "f32[1,2,13,14], f32[1,2,13,40] {size=[3,5], stride=[1,3], pad=[1,2], exclude_pad=1}",
      "bf16[2,3,10,10], bf16[2,3,20,20] {size=[2,2], stride=[2,2]}"}},
    {"batch_norm",
     {"f32[4,33,14,14], f32[33]@0.5:2, f32[33], f32[33], f32[33]@0.5:2",
      "f32[8,16,5,5]@99:101, f32[16]@0.5:2, f32[16], f32[16], f32[16]@0.5:2 {groups=4}",
      "f32[64,40], f32[40]@0.5:2, f32[40], f32[40], f32[40]@0.5:2",
      "f32[12,300]@99:101, f32[300]@0.5:2, f32[300], f32[300], f32[300]@0.5:2 {groups=3}",
      "f32[6,129], f32[129]@0.5:2, f32[129], f32[129], f32[129]@0.5:2 {training=0}",
      "f32[3,7,19,5], f32[7]@0.5:2, f32[7], f32[7], f32[7]@0.5:2 {training=0}",
      "f16[4,16,9,9], f32[16]@0.5:2, f32[16], f32[16], f32[16]@0.5:2",
      "bf16[6,72,17,20], f32[72]@0.5:2, f32[72], f32[72], f32[72]@0.5:2 {groups=2}",
      "bf16[2,300,3,5], f32[300]@0.5:2, f32[300], f32[300], f32[300]@0.5:2",
      "bf16[40,70], f32[70]@0.5:2, f32[70], f32[70], f32[70]@0.5:2 {groups=5}",
      "f32[6,320,4,3], f32[320]@0.5:2, f32[320], f32[320], f32[320]@0.5:2 {groups=2}"}},
    {"batch_norm_dx",
     {"f32[4,33,14,14], f32[4,33,14,14], f32[33]@0.5:2, f32[1,33], f32[1,33]@0.5:2",
      "f32[8,16,5,5], f32[8,16,5,5], f32[16]@0.5:2, f32[4,16], f32[4,16]@0.5:2",
      "f32[64,40], f32[64,40], f32[40]@0.5:2, f32[1,40], f32[1,40]@0.5:2",
      "f32[12,300], f32[12,300], f32[300]@0.5:2, f32[3,300], f32[3,300]@0.5:2",
      "f32[3,7,19,5], f32[3,7,19,5], f32[7]@0.5:2, f32[1,7], f32[1,7]@0.5:2 {training=0}",
      "f16[4,16,9,9], f16[4,16,9,9], f32[16]@0.5:2, f32[1,16], f32[1,16]@0.5:2",
      "bf16[6,72,17,20], bf16[6,72,17,20], f32[72]@0.5:2, f32[2,72], f32[2,72]@0.5:2",
      "bf16[2,300,3,5], bf16[2,300,3,5], f32[300]@0.5:2, f32[1,300], f32[1,300]@0.5:2",
      "bf16[40,70], bf16[40,70], f32[70]@0.5:2, f32[5,70], f32[5,70]@0.5:2",
      "f32[6,320,4,3], f32[6,320,4,3], f32[320]@0.5:2, f32[2,320], f32[2,320]@0.5:2"}},
    {"layer_norm",
     {"f32[33,768], f32[768]@0.5:2, f32[768]", "f32[300,100], f32[100]@0.5:2, f32[100]",
      "f32[5,7,1025], f32[1025]@0.5:2, f32[1025]", "f32[40,3], f32[3]@0.5:2, f32[3]",
      "f32[4,5,20]@99:101, f32[5,20]@0.5:2, f32[5,20] {axes=2}",
      "bf16[9,64], f32[64]@0.5:2, f32[64]"}},
    {"layer_norm_dx",
     {"f32[33,768], f32[33,768], f32[768]@0.5:2, f32[33], f32[33]@0.5:2",
      "f32[700,70], f32[700,70], f32[70]@0.5:2, f32[700], f32[700]@0.5:2",
      "bf16[300,500], bf16[300,500], f32[500]@0.5:2, f32[300], f32[300]@0.5:2",
      "f32[3,5000], f32[3,5000], f32[5000]@0.5:2, f32[3], f32[3]@0.5:2",
      "f32[5,7,1025], f32[5,7,1025], f32[1025]@0.5:2, f32[5,7], f32[5,7]@0.5:2",
      "f32[4,5,20], f32[4,5,20], f32[5,20]@0.5:2, f32[4], f32[4]@0.5:2 {axes=2}",
      "f16[9,64], f16[9,64], f32[64]@0.5:2, f32[9], f32[9]@0.5:2"}},
    {"group_norm",
     {"f32[3,32,9,9], f32[32]@0.5:2, f32[32] {groups=8}",
      "f32[5,40], f32[40]@0.5:2, f32[40] {groups=2}",
      "bf16[2,6,20], f32[6]@0.5:2, f32[6] {groups=6}"}},
    {"group_norm_dx",
     {"f32[3,32,9,9], f32[3,32,9,9], f32[32]@0.5:2, f32[3,8], f32[3,8]@0.5:2 {groups=8}",
      "f32[5,40], f32[5,40], f32[40]@0.5:2, f32[5,2], f32[5,2]@0.5:2 {groups=2}",
      "bf16[2,6,20], bf16[2,6,20], f32[6]@0.5:2, f32[2,6], f32[2,6]@0.5:2 {groups=6}"}},
    {"softmax",
     {"f32[9,1025]@-9:9 {axis=1}", "f32[7,300]@-9:9 {axis=0}", "f32[3,17,5]@-90:90 {axis=1}",
      "f32[40,1] {axis=1}", "bf16[9,128]@-9:9 {axis=-1}", "f32[2,3,7,7] {axis=-1}",
      "f32[300,47]@-9:9 {axis=0}", "bf16[40,300]@-9:9 {axis=0}", "f16[9,50]@-9:9 {axis=1}",
      "f32[300,100]@-9:9 {axis=1}", "bf16[3,4999]@-9:9 {axis=1}"}},
    {"log_softmax",
     {"f32[9,1025]@-9:9 {axis=1}", "f32[7,300]@-9:9 {axis=0}", "f16[9,10]@-9:9 {axis=1}",
      "f32[5,5000]@-9:9 {axis=1}", "bf16[9,33]@-9:9 {axis=0}"}},
    {"cross_entropy",
     {"f32[33,1000]@-9:9, i64[33]@0:999 {smoothing=0.1}", "f32[64,10]@-9:9, i32[64]@0:9",
      "f32[9,5000]@-9:9, i32[9]@0:9 {smoothing=0.2}", "f16[9,70]@-9:9, i32[9]@0:9",
      "bf16[9,40], i64[9]@0:39 {ignore=1, ignore_index=3}"}},
    {"cross_entropy_dx",
     {"f32[33], f32[33,1000]@-9:9, i64[33]@0:999, f32[33]@8:9, f32[33]@1:99 {smoothing=0.1}",
      "f32[64], f32[64,10]@-9:9, i32[64]@0:9, f32[64]@8:9, f32[64]@1:9",
      "f32[9], f32[9,5000]@-9:9, i32[9]@0:9, f32[9]@8:9, f32[9]@1:99",
      "f32[9], bf16[9,40], i64[9]@0:39, f32[9], f32[9]@1:9 {ignore=1, ignore_index=3}",
      "f32[9], f16[9,50], i64[9]@0:39, f32[9], f32[9]@1:9"}},
    {"in_top_k",
     {"f32[64,1000], i64[64]@0:999 {k=500}", "f16[9,5000], i64[9]@0:4999 {k=2500}",
      "bf16[99,9]@0:0.1, i32[99]@-2:11 {k=4}"}},
    {"dropout",
     {"f32[1025] {p=0.3}", "f32[5,1030] {p=0.5, training=0}", "bf16[2051] {p=0.9}",
      "f32[7,5000] {p=0.1}", "f16[30000] {p=0.5}"}},
    {"attention",
     {"f32[1,1,64,16], f32[1,1,512,16], f32[1,1,512,32] {scale=0.3}",
      "f32[1,1,65,17], f32[1,1,513,17], f32[1,1,513,33] {scale=0.3}",
      "f32[2,3,9,5], f32[2,3,1100,5], f32[2,3,1100,2] {scale=1, dropout=0.2}",
      "f32[1,2,600,3], f32[1,2,600,3], f32[1,2,600,7] {scale=1, causal=1}",
      "f32[1,1,130,8]@-2:2, f32[1,1,700,8]@-2:2, f32[1,1,700,1] {scale=1, causal=1}",
      "f32[1,1,700,8]@-2:2, f32[1,1,130,8]@-2:2, f32[1,1,130,40] {scale=1, causal=1, dropout=0.5}",
      "f32[2,70,96], bool[2,1,70,70] {head=16, scale=0.25, dropout=0.1}",
      "f32[2,70,96], bf16[2,2,1,70]@-3:3 {head=16, scale=0.25}",
      "f32[1,40,24], f32[1,40,24], f32[1,40,24], f32[1,40,1]@-3:3 {head=8, scale=0.25}",
      "f32[1,2,3,4], f32[1,2,600,4], f32[1,2,600,4], bool[600]@0:1.01 {scale=0.25}",
      "f32[3,33,96]@-2:2, bool[33,1] {head=32, scale=2, causal=1}",
      "bf16[2,70,96], bool[2,1,70,70] {head=16, scale=0.25, dropout=0.1}",
      "bf16[1,1,70,17], bf16[1,1,530,17], bf16[1,1,530,33], bf16[530] {scale=0.3, causal=1}",
      "f16[1,70,30], f16[1,1,1,70] {head=10, scale=0.3}"}},
    {"attention_dx",
     {"f32[1,1,65,33], f32[1,1,65,33], f32[1,1,65]@6:7, f32[1,1,65,17], f32[1,1,513,17], "
      "f32[1,1,513,33] {scale=0.3}",
      "f32[2,3,9,2], f32[2,3,9,2], f32[2,3,9]@7:8, f32[2,3,9,5], f32[2,3,1100,5], f32[2,3,1100,2] "
      "{scale=1, dropout=0.2}",
      "f32[1,2,600,7], f32[1,2,600,7], f32[1,2,600]@5:8, f32[1,2,600,3], f32[1,2,600,3], "
      "f32[1,2,600,7] {scale=1, causal=1}",
      "f32[1,1,130,1], f32[1,1,130,1], f32[1,1,130]@5:8, f32[1,1,130,8], f32[1,1,700,8], "
      "f32[1,1,700,1] {scale=1, causal=1}",
      "f32[1,1,700,40], f32[1,1,700,40], f32[1,1,700]@5:8, f32[1,1,700,8], f32[1,1,130,8], "
      "f32[1,1,130,40] {scale=1, causal=1, dropout=0.5}",
      "f32[2,70,32], f32[2,70,32], f32[2,2,70]@4:5, f32[2,70,96], bool[2,1,70,70] "
      "{head=16, scale=0.25, dropout=0.1}",
      "bf16[2,70,32], bf16[2,70,32], f32[2,2,70]@4:5, bf16[2,70,96], bool[2,1,70,70] "
      "{head=16, scale=0.25, dropout=0.1}",
      "f16[1,1,70,33], f16[1,1,70,33], f32[1,1,70]@6:7, f16[1,1,70,17], f16[1,1,530,17], "
      "f16[1,1,530,33], f16[530] {scale=0.3, causal=1}"}},
    {"attention_dmask",
     {"f32[1,1,65,33], f32[1,1,65,33], f32[1,1,65]@6:7, f32[1,1,65,17], f32[1,1,513,17], "
      "f32[1,1,513,33], f32[65,513] {scale=0.3}",
      "f32[2,70,32], f32[2,70,32], f32[2,2,70]@4:5, f32[2,70,96], f32[70] "
      "{head=16, scale=0.25, dropout=0.1, causal=1}",
      "bf16[2,70,32], bf16[2,70,32], f32[2,2,70]@4:5, bf16[2,70,96], bf16[2,2,70,1] "
      "{head=16, scale=0.25}"}},
};

/* Whether the machine has this instruction set. */
static bool has(const char *isa) {
    setenv("TRIREME_ISA", isa, 1);
    tri_status status = dev_find("cpu")->open();
    unsetenv("TRIREME_ISA");
    return !status;
}

/* An example's results with an instruction set; false if the machine does not have it, or the
 * device declines the example. */
static bool run_by(const char *isa, int threads, const struct example *e, const struct values *in,
                   struct values *out) {
    tri_status status = TRI_USAGE;
    if (has(isa)) {
        setenv("TRIREME_ISA", isa, 1);
        status = trial_plain(e, dev_find("cpu"), 1, threads, in, out);
    }
    if (status == TRI_FAILED) fail_msg("%s: %s", isa, tri_message());
    unsetenv("TRIREME_ISA");
    return out->n;
}

static void compare_bits(const struct example *e, const char *isa, const struct values *a,
                         const struct values *b) {
    assert_int_equal(a->n, b->n);
    for (int i = 0; i < a->n; i++)
        for (int64_t k = 0; k < tri_shape_count(&a->spec[i].shape); k++) {
            double x = a->at[i][k], y = b->at[i][k];
            if (memcmp(&x, &y, sizeof x) && !(x != x && y != y))
                fail_msg("%s \"%s\": element %lld of result %d is %a by plain instructions and one "
                         "thread, %a by %s and several",
                         e->op->name, e->text, (long long)k, i, x, y, isa);
        }
}

/* The bits are the same with every instruction set and any number of threads. */
static void check_instructions(const tri_op *op, const char *text) {
    static const char *const isa[] = {"plain", "avx2", "avx512"};
    struct example e;
    struct values in = {0}, plain = {0};
    assert_int_equal(example_read(op, text, &e), TRI_OK);
    assert_true(values_draw(&e, &in));
    bool runs = run_by("plain", 1, &e, &in, &plain);
    assert_true(runs || strstr(text, "16[")); /* a half type may be declined */
    for (size_t i = 0; runs && i < COUNT(isa); i++) {
        struct values out = {0};
        if (run_by(isa[i], 2 + (int)i % 2, &e, &in, &out)) compare_bits(&e, isa[i], &plain, &out);
        values_free(&out);
    }
    values_free(&in);
    values_free(&plain);
}

static void check(void **state) {
    const struct group *g = *state;
    const tri_op *row = tri_op_find(g->op);
    assert_non_null(row);
    tri_op op = *row;
    op.examples = g->cases;
    if (tri_op_check(&op, "cpu")) fail_msg("%s", tri_message());
    for (int i = 0; g->cases[i]; i++) check_instructions(&op, g->cases[i]);
}

/* Which kernel a convolution of x [n, c, 6, 6] and weight [o, c, k, k] takes: the table's examples
 * are for that one. */
static void ways(void **state) {
    static const struct {
        int64_t n, c, o, k;
        bool few, across;
    } rows[] = {{16, 1, 6, 5, true, true}, {14, 6, 16, 2, true, true}, {13, 6, 16, 2, true, false},
                {31, 3, 1, 3, true, true}, {33, 3, 1, 3, true, false}, {16, 1, 6, 3, true, false},
                {16, 16, 6, 3, false, false}, {16, 6, 17, 3, false, false}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_graph *g = tri_graph_new(rows[i].n);
        tri_init init = {.kind = TRI_NORMAL, .b = 1};
        tri_tensor *x = tri_state(g, "x", TRI_F32, TRI_SHAPE(rows[i].n, rows[i].c, 6, 6), init);
        tri_tensor *y =
            tri_conv2d(x, tri_state(g, "w", TRI_F32,
                                    TRI_SHAPE(rows[i].o, rows[i].c, rows[i].k, rows[i].k), init));
        assert_int_equal(conv_few_takes(y->node), rows[i].few);
        assert_int_equal(conv_across_takes(y->node), rows[i].across);
        tri_graph_free(g);
    }
}

/* An infinite weight makes the same outputs infinite or NaN with all instruction sets, also at the
 * ends of planes. */
static void infinite_weight(void **state) {
    static const char *const isa[] = {"plain", "avx2", "avx512"};
    enum { N = 16, SIDE = 6 };
    static float y[COUNT(isa)][N * 2 * SIDE * SIDE];
    float weight[2 * 25] = {INFINITY};
    int infinite = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(isa); i++) {
        tri_graph *g = tri_graph_new(N);
        tri_init normal = {.kind = TRI_NORMAL, .b = 1};
        tri_tensor *x = tri_state(g, "x", TRI_F32, TRI_SHAPE(N, 1, SIDE, SIDE), normal);
        tri_tensor *w = tri_state(g, "w", TRI_F32, TRI_SHAPE(2, 1, 5, 5), normal);
        tri_output(tri_conv2d(x, w, .pad = 2), "y");
        setenv("TRIREME_ISA", has(isa[i]) ? isa[i] : "plain", 1);
        tri_run *run = tri_open(g, &(tri_options){.forward = true, .device = "cpu", .seed = 2});
        unsetenv("TRIREME_ISA");
        if (!run || tri_write(run, "w", weight, sizeof weight) || tri_forward(run))
            fail_msg("%s: %s", isa[i], tri_message());
        assert_int_equal(tri_read(run, "y", y[i], sizeof y[i]), TRI_OK);
        assert_int_equal(tri_close(run), TRI_OK);
        for (size_t k = 0; k < COUNT(y[i]); k++)
            assert_true(y[0][k] == y[i][k] || (y[0][k] != y[0][k] && y[i][k] != y[i][k]));
    }
    for (size_t k = 0; k < COUNT(y[0]); k++) infinite += !isfinite(y[0][k]);
    assert_true(infinite > 0 && infinite < (int)COUNT(y[0]));
}

/* A case that the device does not support is reported, with an alternative. */
static void declines(void **state) {
    static const char text[] = "graph {batch=1, lanes=1}\n"
                               "%a = state() {name=\"a\", type=f16, shape=[2,2]}\n"
                               "%y = matmul(%a, %a) {trans_a=0, trans_b=0} @ \"y\"\n";
    const struct dev *dev = dev_find("cpu");
    (void)state;
    tri_graph *g = tri_graph_parse(text, strlen(text), "f16");
    assert_int_equal(tri_graph_status(g), TRI_OK);
    const char *reason = dev->declines(g->node[g->n_nodes - 1]);
    assert_non_null(reason);
    assert_non_null(strstr(reason, "f16 matmul"));
    assert_non_null(strstr(reason, "cast"));
    tri_graph_free(g);
}

static int infer_same(const tri_node *n, tri_spec *out) {
    out[0] = n->in[0]->spec;
    return 1;
}

#define NAN_ROWS 60

/* Where rows, some with NaN, have their maximum, and its value, by a device and an instruction
 * set. */
static void rank_nans(const char *device, const char *isa, tri_type type, float out[3][NAN_ROWS]) {
    static const char *const name[] = {"argmax", "top", "max"};
    tri_graph *g = tri_graph_new(1);
    tri_tensor *x = tri_state(g, "x", TRI_F32, TRI_SHAPE(NAN_ROWS, 70),
                              (tri_init){.kind = TRI_UNIFORM, .a = -0.03, .b = 3});
    tri_tensor *y = tri_cast(tri_sqrt(x), type), *values, *index;
    tri_top_k(y, 1, &values, &index);
    tri_output(tri_cast(tri_argmax(y, 1), TRI_F32), name[0]);
    tri_output(tri_cast(index, TRI_F32), name[1]);
    tri_output(tri_cast(tri_max(y, TRI_SHAPE(1)), TRI_F32), name[2]);
    setenv("TRIREME_ISA", isa, 1);
    tri_run *run = tri_open(g, &(tri_options){.forward = true, .device = device, .seed = 3});
    unsetenv("TRIREME_ISA");
    if (!run || tri_forward(run)) fail_msg("%s: %s", isa, tri_message());
    for (int i = 0; i < 3; i++)
        assert_int_equal(tri_read(run, name[i], out[i], sizeof out[i]), TRI_OK);
    assert_int_equal(tri_close(run), TRI_OK);
}

/* A NaN counts as larger than any number, in every type and with all instruction sets. */
static void ranks_nan(void **state) {
    static const tri_type types[] = {TRI_F32, TRI_BF16, TRI_F16};
    static const char *const isa[] = {"plain", "avx2", "avx512"};
    (void)state;
    for (size_t t = 0; t < COUNT(types); t++) {
        float want[3][NAN_ROWS], got[3][NAN_ROWS];
        int nans = 0;
        rank_nans("ref", "plain", types[t], want);
        for (int i = 0; i < NAN_ROWS; i++) nans += want[2][i] != want[2][i];
        assert_true(nans > 5 && nans < NAN_ROWS - 5);
        for (size_t i = 0; i < COUNT(isa); i++) {
            if (!has(isa[i])) continue;
            rank_nans("cpu", isa[i], types[t], got);
            for (int k = 0; k < 3 * NAN_ROWS; k++) {
                float a = want[k / NAN_ROWS][k % NAN_ROWS];
                float b = got[k / NAN_ROWS][k % NAN_ROWS];
                assert_true(a == b || (a != a && b != b));
            }
        }
    }
}

static int runs_of_own;

static void negate(const tri_call *c) {
    int64_t count = tri_shape_count(&c->node->out[0].spec.shape);
    runs_of_own++;
    for (int64_t i = 0; i < count; i++)
        ((float *)c->out[0])[i] = -((const float *)c->in[0])[i];
}

/* A user's operator runs with the kernel of its row. */
static void own_operator(void **state) {
    static const char *const examples[] = {"f32[3,5]", NULL};
    static const tri_op row = {.name = "test_negate", .inputs = 1, .infer = infer_same,
                               .gradient = tri_grad_none, .kernel = negate,
                               .examples = examples};
    (void)state;
    assert_int_equal(tri_register(&row), TRI_OK);
    if (tri_op_check(&row, "cpu")) fail_msg("%s", tri_message());
    assert_true(runs_of_own >= 2); /* on the reference and on the device */
}

int main(int argc, char **argv) {
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(ways),         cmocka_unit_test(infinite_weight),
        cmocka_unit_test(declines),     cmocka_unit_test(own_operator),
        cmocka_unit_test(ranks_nan),
    };
    static struct CMUnitTest tests[COUNT(groups) + COUNT(others)];
    static void *states[COUNT(groups)];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(groups); i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted |= !strcmp(argv[k], groups[i].op);
        if (!wanted) continue;
        states[n] = (void *)&groups[i];
        tests[n] = (struct CMUnitTest){.name = groups[i].op, .test_func = check,
                                       .initial_state = states[n]};
        n++;
    }
    for (size_t i = 0; argc < 2 && i < COUNT(others); i++) tests[n++] = others[i];
    return _cmocka_run_group_tests("cpu", tests, n, NULL, NULL);
}
