/* Profiles: what CANN 8.1.RC1 does not have, of functions that later versions have. Facts of its headers. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

static const char *const newer_than_8_1[] = {
    "aclDumpOpTensors", "aclrtCtxGetCurrentDefaultStream", "aclrtDeviceGetStreamPriorityRange", "aclrtDeviceGetUuid", "aclrtDevicePeerAccessStatus",
    "aclrtFreeHostWithDevSync", "aclrtFreeWithDevSync", "aclrtGetDeviceCapability", "aclrtGetDeviceInfo", "aclrtGetEventAvailNum", "aclrtGetEventId",
    "aclrtGetMemUsageInfo", "aclrtGetStreamAttribute", "aclrtGetStreamAvailableNum", "aclrtHostRegisterV2", "aclrtLaunchHostFunc",
    "aclrtSetStreamAttribute", "aclrtStreamGetFlags", "aclrtStreamGetPriority", "aclrtStreamWaitEventWithTimeout", "aclsysGetVersionNum",
    "aclsysGetVersionStr", "aclnnAcoshGrad", "aclnnAdaLayerNorm", "aclnnAdaLayerNormBackward", "aclnnAdaLayerNormQuant", "aclnnAdaLayerNormV2",
    "aclnnAdaptiveMaxPool2dBackward", "aclnnAddLayerNormQuant", "aclnnAddLayerNormQuantV2", "aclnnAddN", "aclnnAddRmsNormCast",
    "aclnnAddRmsNormDynamicMxQuant", "aclnnAddRmsNormDynamicQuantV2", "aclnnAddRmsNormQuantV2", "aclnnAddV3", "aclnnAddmmWeightNz", "aclnnAddrV2",
    "aclnnAdvanceStepV2", "aclnnAlltoAllvGroupedMatMul", "aclnnAmpUpdateScale", "aclnnAngleV2", "aclnnAntiMxQuant", "aclnnApplyAdam",
    "aclnnApplyAdamD", "aclnnApplyAdamW", "aclnnApplyAdamWQuant", "aclnnApplyFtrl", "aclnnApplyGradientDescent", "aclnnApplyRotaryPosEmbV2",
    "aclnnApplyTopKTopP", "aclnnAsStrided", "aclnnAssignSub", "aclnnAxpyV2", "aclnnBatchMatMulWeightNz", "aclnnBatchNormReduce",
    "aclnnBitwiseAndTensorOut", "aclnnBucketize", "aclnnCIoU", "aclnnCastV3", "aclnnCdist", "aclnnCdistBackward", "aclnnChunkCat",
    "aclnnClippedSwiglu", "aclnnClippedSwigluGrad", "aclnnClippedSwigluV2", "aclnnConfusionTranspose", "aclnnCrossEntropySumExpAndIndexLogit",
    "aclnnDeformableConv2d", "aclnnDeformableConv2dBackward", "aclnnDequantSituQuant", "aclnnDequantSwigluQuantV2", "aclnnDistributeBarrier",
    "aclnnDistributeBarrierV2", "aclnnDropoutGenMaskV2Tensor", "aclnnDropoutV3", "aclnnDropoutV3Grad", "aclnnDualLevelQuantMatmulWeightNz",
    "aclnnDynamicBlockMxQuant", "aclnnDynamicBlockQuant", "aclnnDynamicBlockQuantV2", "aclnnDynamicDualLevelMxQuant", "aclnnDynamicMxQuant",
    "aclnnDynamicMxQuantV2", "aclnnDynamicMxQuantV3", "aclnnDynamicMxQuantWithDualAxis", "aclnnDynamicMxQuantWithDualAxisV2", "aclnnDynamicQuantV3",
    "aclnnDynamicQuantV4", "aclnnElasticReceivableInfoCollect", "aclnnElasticReceivableTest", "aclnnEluV2", "aclnnEmbeddingDenseGrad",
    "aclnnExpSegsum", "aclnnExpSegsumBackward", "aclnnExpandIntoJaggedPermute", "aclnnExpandv", "aclnnFastBatchNormBackward", "aclnnFastGelu",
    "aclnnFastGeluBackward", "aclnnFastGeluV2", "aclnnFastLayerNorm", "aclnnFlashAttentionUnpaddingScoreGradV3",
    "aclnnFlashAttentionUnpaddingScoreGradV4", "aclnnFlashAttentionVarLenScoreV3", "aclnnFlashAttentionVarLenScoreV4", "aclnnFlatQuantV2",
    "aclnnFlatQuantV3", "aclnnFloorDiv", "aclnnForeachACosInplace", "aclnnForeachAddListInplace", "aclnnForeachDivListInplace",
    "aclnnForeachLogInplace", "aclnnForeachMulListInplace", "aclnnForeachMulScalarInplace", "aclnnForeachNonFiniteCheckAndUnscale",
    "aclnnForeachSubListInplace", "aclnnForeachSubScalarInplace", "aclnnFusedAdamw", "aclnnFusedAddRmsNorm", "aclnnFusedCrossEntropyLossWithMaxSum",
    "aclnnFusedInferAttentionScoreV4", "aclnnFusedLinearCrossEntropyLossGrad", "aclnnFusedLinearOnlineMaxSum", "aclnnFusedMatmul",
    "aclnnFusedPatchMlp", "aclnnFusedQuantMatmul", "aclnnFusedQuantMatmulWeightNz", "aclnnFusedSgd", "aclnnGRU", "aclnnGRUBackward", "aclnnGatherV3",
    "aclnnGaussianBlur", "aclnnGaussianNllLoss", "aclnnGaussianNllLossGrad", "aclnnGeluQuant", "aclnnGroupNormSiluQuant",
    "aclnnGroupNormalizationGrad", "aclnnGroupedDynamicBlockQuant", "aclnnGroupedDynamicBlockQuantV2", "aclnnGroupedDynamicMxQuant",
    "aclnnGroupedDynamicMxQuantV2", "aclnnGroupedDynamicMxQuantWithDualAxis", "aclnnGroupedMatMulAlltoAllv", "aclnnGroupedMatmulFinalizeRouting",
    "aclnnGroupedMatmulFinalizeRoutingV2", "aclnnGroupedMatmulFinalizeRoutingV3", "aclnnGroupedMatmulFinalizeRoutingWeightNzV2",
    "aclnnGroupedMatmulSwigluQuantWeightNZ", "aclnnGroupedMatmulV5", "aclnnGroupedMatmulWeightNz", "aclnnGroupedQuantMax", "aclnnHardShrink",
    "aclnnHardsigmoidV2", "aclnnHardswishBackwardV2", "aclnnHeaviside", "aclnnHingeEmbeddingLoss", "aclnnHingeLoss", "aclnnHingeLossGrad",
    "aclnnHuberLoss", "aclnnIndexAddV2", "aclnnIndexFill", "aclnnInnerDistributeBarrier", "aclnnInnerFusedInferAttentionScore",
    "aclnnInnerFusedInferAttentionScoreTensor", "aclnnInplaceAddRmsNorm", "aclnnInplaceAddV3", "aclnnInplaceAddrV2",
    "aclnnInplaceBitwiseAndTensorOut", "aclnnInplaceHardsigmoidV2", "aclnnInplaceIndexFill", "aclnnInplaceNormalTensor", "aclnnInplaceQuantScatterV2",
    "aclnnInplaceRandomTensor", "aclnnInplaceRandomWithoutFromTo", "aclnnInplaceRandomWithoutFromToTensor", "aclnnInplaceScatterReduce",
    "aclnnInplaceUniformTensor", "aclnnInterleaveRope", "aclnnKlDivTargetBackward", "aclnnLSTM", "aclnnLayerNormQuant", "aclnnLeftShift",
    "aclnnLeftShifts", "aclnnLinalgCholesky", "aclnnLogSpace", "aclnnLpLoss", "aclnnLstmBackward", "aclnnMaskedScale", "aclnnMatmulCompress",
    "aclnnMatmulEmuSplitWeight", "aclnnMatmulWeightNz", "aclnnMaxPoolV3", "aclnnMaxPoolingGrad", "aclnnMlaPrologV2", "aclnnMlaPrologV2WeightNz",
    "aclnnMlaPrologV3", "aclnnMlaPrologV3WeightNz", "aclnnModulate", "aclnnModulateBackward", "aclnnMoeDistributeBufferReset",
    "aclnnMoeDistributeCombineAddRmsNorm", "aclnnMoeDistributeCombineAddRmsNormV2", "aclnnMoeDistributeCombineV2", "aclnnMoeDistributeCombineV3",
    "aclnnMoeDistributeDispatchV2", "aclnnMoeDistributeDispatchV3", "aclnnMoeGatingTopK", "aclnnMoeInitRoutingV3",
    "aclnnMoeTokenPermuteWithRoutingMap", "aclnnMoeTokenPermuteWithRoutingMapGrad", "aclnnMoeTokenUnpermuteWithRoutingMap", "aclnnMoeUpdateExpert",
    "aclnnMultinomialTensor", "aclnnMxToBlockMxQuant", "aclnnNpuFormatCast", "aclnnNsaCompress", "aclnnNsaCompressAttention",
    "aclnnNsaCompressAttentionInfer", "aclnnNsaCompressGrad", "aclnnNsaCompressWithCache", "aclnnNsaSelectedAttention",
    "aclnnNsaSelectedAttentionGrad", "aclnnNsaSelectedAttentionInfer", "aclnnQuantBatchMatmulInplaceAdd", "aclnnQuantConvolution",
    "aclnnQuantConvolutionWeightNz", "aclnnQuantMatmulActivationQuantWeightNz", "aclnnQuantMatmulAllReduceV4", "aclnnQuantMatmulReduceSumWeightNz",
    "aclnnQuantMatmulV5", "aclnnQuantMax", "aclnnQuantizedBatchNorm", "aclnnRasterizer", "aclnnRealDiv", "aclnnReduceMinV2", "aclnnReluGradV3",
    "aclnnReluGradV4", "aclnnReluV3", "aclnnRepeatInterleaveGrad", "aclnnRgb2yuv422", "aclnnRightShift", "aclnnRmsNormDynamicMxQuant",
    "aclnnRmsNormDynamicQuant", "aclnnRmsNormGradQuant", "aclnnRmsNormQuant", "aclnnRmsNormQuantV3", "aclnnRoiPoolingGradWithArgMax",
    "aclnnRoiPoolingWithArgMax", "aclnnRotaryPositionEmbedding", "aclnnRotaryPositionEmbeddingGrad", "aclnnRotateQuant", "aclnnScatterDiv",
    "aclnnScatterList", "aclnnScatterMax", "aclnnScatterMin", "aclnnScatterMul", "aclnnScatterReduce", "aclnnSiluMul", "aclnnSimThreadExponential",
    "aclnnSituGlu", "aclnnSituGluGrad", "aclnnSituMxQuant", "aclnnSleep", "aclnnSoftmaxCrossEntropyWithLogits", "aclnnSoftmaxGrad", "aclnnSoftsign",
    "aclnnSoftsignBackward", "aclnnSortWithIndex", "aclnnSparse4to2QuantMatmulWeightNz", "aclnnSquare", "aclnnSquaredRelu", "aclnnStridedSlice",
    "aclnnSvd", "aclnnSwiGluQuantV2", "aclnnSwigluBackwardMxQuantWithDualAxis", "aclnnSwigluGroup", "aclnnSwigluGroupGrad", "aclnnSwigluGroupQuant",
    "aclnnSwigluGroupQuantGrad", "aclnnSwigluMxQuant", "aclnnSwigluMxQuantWithDualAxis", "aclnnSyncBatchNormGatherStats", "aclnnTanhGrad",
    "aclnnTensorMove", "aclnnTfScatterAdd", "aclnnThnnFusedLstmCell", "aclnnThnnFusedLstmCellBackward", "aclnnThreeInterpolateBackward",
    "aclnnTopKTopPSample", "aclnnTopKTopPSampleV2", "aclnnTransQuantParamV3", "aclnnTransformBiasRescaleQkv", "aclnnTransposeBatchMatMul",
    "aclnnTransposeBatchMatMulWeightNz", "aclnnTransposeQuantBatchMatMul", "aclnnTransposeQuantBatchMatMulWeightNz", "aclnnTruncateDiv",
    "aclnnTruncateMod", "aclnnTurboQuantCompressLatent", "aclnnUnfoldGrad", "aclnnViewCopy", "aclnnWeightQuantBatchMatmulNz",
    "aclnnWeightQuantPreprocess", "aclnnXlog1py",
};

/* The profile (MINDTORCH_NPU_EMULATOR_CANN) that lacks a function, or NULL. An operator's two phases have one answer. */
EM_API const char *emMissing(const char *symbol) {
    const char *profile = getenv("MINDTORCH_NPU_EMULATOR_CANN");
    if (!profile || strncmp(profile, "8.1", 3)) return NULL;
    size_t length = strlen(symbol);
    const char *end = strstr(symbol, "GetWorkspaceSize");
    if (end && !strncmp(symbol, "aclnn", 5)) length = (size_t)(end - symbol);
    for (size_t k = 0; k < sizeof newer_than_8_1 / sizeof *newer_than_8_1; k++)
        if (strlen(newer_than_8_1[k]) == length && !strncmp(newer_than_8_1[k], symbol, length)) return "CANN 8.1.RC1";
    return NULL;
}
